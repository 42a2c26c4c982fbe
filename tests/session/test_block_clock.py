"""What the accounts of a block add up to, where they do not agree."""

from __future__ import annotations

import time

import pytest

from jobmeter.meter.meter import Meter
from jobmeter.session.block_clock import BlockClock, _Reading


class WithReadings(BlockClock):
    """Two tasks in turns: at the end its thread has 0.3 s, and the events have what a hypervisor took, too."""

    readings: tuple[_Reading, ...] = (
        _Reading(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        _Reading(0.3001, 0.3, 0.0, 0.33, 0.33, 0.0),
    )
    looks = 0

    def _read(self) -> _Reading:
        self.looks += 1
        return self.readings[self.looks - 1]


def test_time_that_a_hypervisor_had_is_not_of_a_thread_that_a_coroutine_started() -> None:
    clock = WithReadings(Meter(), alone=True, stepped=True)
    clock.enter_step()
    clock.leave_step()
    clock.settle(alone=True)
    cpu = clock.so_far(children=False, foreign_child_reaped=False, interleaved=True)
    assert ("exact", True) == (cpu.quality, cpu.seconds < 0.01)


class BesideOthers(WithReadings):
    """Its thread has 0.3 s and the other threads of the process 2.1 s; a hypervisor took 0.06 s from the thread."""

    readings = (_Reading(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), _Reading(2.4, 0.3, 0.0, 0.36, 0.36, 0.0))


class WithAThreadOfItsOwn(BesideOthers):
    """As before, and a thread that it started has 0.2 s."""

    readings = (BesideOthers.readings[0], _Reading(2.4, 0.3, 0.0, 0.56, 0.36, 0.0))


class OfAThreadThatEnded(BesideOthers):
    """A block of the only thread that worked, which ended; the events have 0.06 s that a hypervisor took."""

    readings = (BesideOthers.readings[0], _Reading(0.3, None, 0.0, 0.36, 0.36, 0.0))


class RunsWhileItIsRead(WithReadings):
    """Its thread has 0.4 s. Another thread begins a block and reads; between two events this one runs for 10 ms."""

    readings = (
        BesideOthers.readings[0],
        _Reading(1.2, 0.2, 0.0, 0.2, 0.21, 0.0),
        _Reading(2.4, 0.4, 0.0, 0.4, 0.4, 0.0),
    )


def test_a_thread_that_runs_while_another_reads_its_events_has_started_nothing() -> None:
    clock = RunsWhileItIsRead(Meter(), alone=False, stepped=False)
    clock.settle(alone=False)
    clock.settle(alone=False)
    cpu = clock.so_far(children=False, foreign_child_reaped=False, interleaved=False)
    assert ("exact", 0.4) == (cpu.quality, cpu.seconds)


@pytest.mark.parametrize(
    ("kind", "seconds"), [(BesideOthers, 0.3), (WithAThreadOfItsOwn, 0.5), (OfAThreadThatEnded, 0.3)]
)
def test_time_that_a_hypervisor_had_is_not_of_a_thread_beside_others(kind: type[WithReadings], seconds: float) -> None:
    clock = kind(Meter(), alone=False, stepped=False)
    clock.settle(alone=False)
    cpu = clock.so_far(children=False, foreign_child_reaped=False, interleaved=False)
    assert "exact" == cpu.quality
    assert seconds == pytest.approx(cpu.seconds)


class BusyMeter(Meter):
    """A meter whose thread runs for 24 ms just after its clock was read for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def used_seconds(self) -> float:
        self.reads += 1
        return 0.0 if self.reads == 1 else 0.024


def test_the_sampling_thread_may_run_while_clocks_are_read() -> None:
    before = time.process_time()
    clock = BlockClock(BusyMeter(), alone=True, stepped=False)
    after = time.process_time()
    assert before - 0.024 <= clock._first.process <= after - 0.024
    clock.close()


class Counter:
    """An event of which the first values are given; at the last it stays."""

    def __init__(self, *values: int) -> None:
        self._values = list(values)

    def read(self) -> int:
        return self._values.pop(0) if len(self._values) > 1 else self._values[0]

    def close(self) -> None:
        pass


def test_two_events_of_a_thread_that_runs_meanwhile_are_read_at_one_moment() -> None:
    clock = BlockClock(Meter(), alone=False, stepped=False)
    clock.close()
    clock._event = Counter(7_000_000, 12_000_000)  # type: ignore[assignment]
    clock._own_event = Counter(7_000_000, 12_000_000)  # type: ignore[assignment]
    assert (0.012, 0.012) == clock._event_seconds()
