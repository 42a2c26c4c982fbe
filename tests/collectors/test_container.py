"""What the engine reports, beside the other sources: never late, never after the end."""

from __future__ import annotations

import threading
import time

from jobmeter.collectors.container import ContainerSource, ContainerStats
from jobmeter.collectors.contract import Ending, Moment, Readings
from jobmeter.errors import NoData
from tests.waiting import LONG


class GatedContainer:
    """A container whose engine answers only when the test allows it."""

    has_own_network = True

    def __init__(self, *answers: ContainerStats | None, already_ran: bool = False) -> None:
        self.already_ran = already_ran
        self._answers = list(answers)
        self.may_answer = threading.Semaphore(0)

    def stats(self) -> ContainerStats | None:
        self.may_answer.acquire()
        return self._answers.pop(0) if self._answers else None


def assert_comes_to_read(source: ContainerSource, wanted: Readings) -> None:
    """Read again until it is that: the answer comes from a thread of its own."""
    deadline = time.monotonic() + LONG
    while (readings := source.read(Moment(time.monotonic()))) != wanted and time.monotonic() < deadline:
        time.sleep(0.005)
    assert wanted == readings


def test_an_engine_that_takes_its_time_holds_nothing_up() -> None:
    container = GatedContainer(ContainerStats(cpu_seconds=1.0, mem_current=5))
    source = ContainerSource(container)
    assert {} == source.read(Moment(0.0))
    container.may_answer.release()
    assert_comes_to_read(source, {"container_cpu_seconds": 1.0, "container_mem_current": 5})
    source.close()


def test_the_last_figure_before_the_end_stands_and_no_level() -> None:
    container = GatedContainer(ContainerStats(cpu_seconds=1.0, mem_current=5), None, None)
    source = ContainerSource(container)
    for _ in range(3):
        container.may_answer.release()
    assert_comes_to_read(source, {"container_cpu_seconds": 1.0, "container_mem_current": 5})
    assert {"container_cpu_seconds": 1.0} == source.finish(Moment(0.0), Ending())
    source.close()


def test_what_was_used_before_does_not_count() -> None:
    container = GatedContainer(
        ContainerStats(cpu_seconds=10.0, pids=3, net_rx_bytes=100),
        ContainerStats(cpu_seconds=12.5, pids=4, net_rx_bytes=150),
        already_ran=True,
    )
    source = ContainerSource(container)
    container.may_answer.release()
    assert_comes_to_read(source, {"container_cpu_seconds": 0.0, "container_pids": 3, "container_net_rx_bytes": 0})
    container.may_answer.release()
    assert_comes_to_read(source, {"container_cpu_seconds": 2.5, "container_pids": 4, "container_net_rx_bytes": 50})
    source.close()


def test_an_engine_that_fails_costs_this_reading_alone() -> None:
    class Failing(GatedContainer):
        def stats(self) -> ContainerStats | None:
            raise NoData("gone")

    source = ContainerSource(Failing())
    deadline = time.monotonic() + LONG
    failed = False
    while not failed and time.monotonic() < deadline:
        try:
            source.read(Moment(0.0))
        except NoData:
            failed = True
        time.sleep(0.005)
    source.close()
    assert failed
