"""Results of several processes come in the order of the batches, and no process outlives its command."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from jobmeter.errors import StoreError
from jobmeter.store import ordered_map
from jobmeter.store.ordered_map import Batch, map_in_order
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def whatever_other_tests_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with threads is not forked; one that another test left in this process does no harm here."""
    monkeypatch.setattr(ordered_map, "can_start_children", lambda: (os.cpu_count() or 1) > 1)


def numbered(count: int) -> Iterator[Batch]:
    return ([(number,)] for number in range(count))


def test_results_come_in_the_order_of_the_batches() -> None:
    def slow_at_first(batch: Batch) -> tuple[int, int]:
        time.sleep(0.05 if batch[0][0] < 2 else 0)
        return batch[0][0], os.getpid()

    results = list(map_in_order(slow_at_first, numbered(50)))
    assert list(range(50)) == [number for number, _ in results]
    if (os.cpu_count() or 1) > 1:
        assert os.getpid() not in {process for _, process in results}


def test_few_batches_start_no_process() -> None:
    assert {os.getpid()} == set(map_in_order(lambda batch: os.getpid(), numbered(2)))


def test_one_cpu_does_all_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_map, "can_start_children", lambda: False)
    assert {os.getpid()} == set(map_in_order(lambda batch: os.getpid(), numbered(50)))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="starts processes only where there are several CPUs")
def test_processes_end_when_nobody_reads_on() -> None:
    results = map_in_order(lambda batch: os.getpid(), numbered(1000))
    children = {next(results) for _ in range(10)}
    results.close()  # type: ignore[attr-defined]
    wait_for(lambda: not any(map(is_alive, children)), "the end of the processes")


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="starts processes only where there are several CPUs")
def test_batches_and_results_that_fit_in_no_pipe_come_through() -> None:
    size, count = 2 << 20, 3 * (os.cpu_count() or 1)

    def enlarged(batch: Batch) -> tuple[int, bytes]:
        return batch[0][0], bytes(size)

    large: Iterator[Batch] = ([(number, bytes(size // 8))] for number in range(count))
    assert [(number, size) for number in range(count)] == [
        (number, len(content)) for number, content in map_in_order(enlarged, large)
    ]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="starts processes only where there are several CPUs")
def test_a_process_that_is_killed_is_an_error_and_no_hang() -> None:
    def killed(batch: Batch) -> int:
        if batch[0][0] == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with pytest.raises(StoreError, match="a process that read journals was killed"):
        list(map_in_order(killed, numbered(1000)))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
