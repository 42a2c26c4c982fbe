"""What the accounts of a block add up to, where they do not agree."""

from __future__ import annotations

from jobmeter.meter.meter import Meter
from jobmeter.session.block_clock import BlockClock, _Reading


class WithReadings(BlockClock):
    """Two tasks in turns: at the end its thread has 0.3 s, and the events have what a hypervisor took, too."""

    readings = (_Reading(0.0, 0.0, 0.0, 0.0, 0.0), _Reading(0.3001, 0.3, 0.0, 0.33, 0.0))
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
