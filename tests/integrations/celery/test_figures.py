"""What tasks used, against what they are known to use: in children, threads and greenlets of real workers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import jobmeter
from tests.integrations.celery.place import TaskPlace
from tests.parts import need_module
from tests.running import is_exact_cpu
from tests.waiting import LONG, wait_for

MIB = 1 << 20


def test_a_process_that_a_task_starts_is_the_tasks(place: TaskPlace) -> None:
    cpu_seconds, peak_bytes = place.worker("-c", "1").result("start_process", 4.0, 400)
    run = place.run("start_process")
    cpu = run.usage.cpu_seconds
    assert cpu is not None
    assert 0.99 * cpu_seconds <= cpu.value <= 1.03 * cpu_seconds
    assert is_exact_cpu(run.record)
    growth = run.measured("block_mem_growth")["peak"]
    assert 0.97 * peak_bytes <= growth <= 1.03 * peak_bytes
    assert run.memory_peak_bytes is not None
    assert run.memory_peak_bytes >= growth
    assert 2 == run.figure("processes_peak")


def test_a_small_task_after_a_large_one_has_its_own_peak(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    assert worker.result("hold", 500) == worker.result("hold", 30), "both in one child"
    large, small = (run.measured("block_mem_growth")["peak"] for run in place.runs("hold"))
    assert 0.97 * 500 * MIB <= large <= 1.05 * 500 * MIB
    assert 0.95 * 30 * MIB <= small <= 30 * MIB + 5 * MIB
    assert place.runs("hold")[1].memory_peak_bytes < 250 * MIB  # type: ignore[operator]


def test_two_tasks_in_two_children_have_each_their_own_cpu_time(place: TaskPlace) -> None:
    assert ["exact", "exact"] == _spin_at_once(place, 2, "-c", "2")
    assert {"sampled"} == {_memory_quality(run) for run in place.runs("spin")}


def test_four_tasks_in_four_threads_have_each_their_own_cpu_time(place: TaskPlace) -> None:
    assert ["exact"] * 4 == _spin_at_once(place, 4, "-P", "threads", "-c", "4")
    assert {"shared"} == {_memory_quality(run) for run in place.runs("spin")}


def test_a_solo_worker_measures_its_tasks(place: TaskPlace) -> None:
    assert ["exact"] == _spin_at_once(place, 1, "-P", "solo")


def test_tasks_in_greenlets_are_counted_with_each_other_and_marked_so(place: TaskPlace) -> None:
    need_module("gevent")
    worker = place.worker("-P", "gevent", "-c", "4")
    (place.folder / "spin").mkdir()
    sent = [worker.send("spin", seconds, 2, str(place.folder / "spin")) for seconds in (0.2, 0.6)]
    truths = [result.get(timeout=LONG) for result in sent]
    runs = place.runs("spin")
    assert ["shared"] * 2 == [run.usage.cpu_seconds.quality for run in runs]  # type: ignore[union-attr]
    assert ["shared"] * 2 == [_memory_quality(run) for run in runs]
    # "Shared" is this or less: whoever waits for the other is charged with what that did.
    assert all(run.cpu_seconds >= 0.2 for run in runs)  # type: ignore[operator]
    assert max(run.cpu_seconds for run in runs) >= max(truths)  # type: ignore[type-var]


def _spin_at_once(place: TaskPlace, count: int, *options: str) -> list[str]:
    """Tasks of different lengths side by side: their CPU time is right; its qualities, but for a hypervisor."""
    worker = place.worker(*options)
    folder = place.folder / "spin"
    folder.mkdir()
    for number in range(count):
        worker.send("spin", 0.5 + 0.3 * number, count, str(folder), ignore_result=True)
    wait_for(lambda: [run.labels.get("state") for run in place.runs("spin")] == ["SUCCESS"] * count, "all tasks")
    qualities = []
    for run in place.runs("spin"):
        truth = float((folder / f"{run.labels['task_id']}.truth").read_text())
        assert run.usage.cpu_seconds is not None
        assert truth <= run.usage.cpu_seconds.value <= 1.03 * truth + 0.005
        qualities.append("exact" if is_exact_cpu(run.record) else str(run.usage.cpu_seconds.quality.value))
    return qualities


def _memory_quality(run: jobmeter.Run) -> str:
    assert run.usage.memory_peak_bytes is not None
    return str(run.usage.memory_peak_bytes.quality.value)


def test_check_finds_a_task_that_used_more_than_it_requested(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    worker.result("use_more_than_requested")
    worker.result("hold", 10)
    command = [sys.executable, "-m", "jobmeter", "check", "--name", "*", "--store", str(place.store)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert 1 == checked.returncode, checked.stderr
    assert "use_more_than_requested" in checked.stdout
    assert "60 MiB" in checked.stdout
    assert "hold" not in checked.stdout


@contextlib.contextmanager
def listening(app: Any) -> Iterator[list[Any]]:
    """Receives the events of tasks that succeeded, in a thread."""
    events: list[Any] = []
    with app.connection() as connection:
        receiver = app.events.Receiver(connection, handlers={"task-succeeded": events.append})

        def listen() -> None:
            while not receiver.should_stop:
                with contextlib.suppress(TimeoutError):
                    receiver.capture(timeout=0.2, wakeup=False)

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield events
        finally:
            receiver.should_stop = True
            thread.join()


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_the_usage_is_in_the_meta_of_the_result_and_in_events_on_request(place: TaskPlace, pool: str) -> None:
    from celery import Celery

    worker = place.worker("-c", "1", "-E", "-P", pool, environment={"JOBMETER_CELERY_USAGE": "result,events"})
    app = Celery("listener", broker=place.broker, backend=place.broker, set_as_current=False)
    with listening(app) as events:
        wait_for(lambda: worker.result("add", 1, 1) and bool(events), "an event")
        sent = worker.send("spin", 0.2)
        sent.get(timeout=LONG)
        wait_for(lambda: any(event["uuid"] == sent.id for event in events), "the event of the task")
    (run,) = place.runs("spin")
    meta = app.backend.get_task_meta(sent.id)["jobmeter"]
    (event,) = [event["jobmeter"] for event in events if event["uuid"] == sent.id]
    assert is_exact_cpu(run.record)
    for usage in (meta, event):
        assert run.id == usage["run"]
        assert 0.2 <= usage["cpu_seconds"] <= run.cpu_seconds
        assert run.record["usage"]["cpu_seconds"]["quality"] == usage["quality"]["cpu_seconds"]
        assert usage["memory_peak_bytes"] > MIB
        assert len(json.dumps(usage)) < 400


def test_without_the_request_a_result_is_as_ever(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    sent = worker.send("add", 1, 2)
    assert 3 == sent.get(timeout=LONG)
    assert "jobmeter" not in sent._get_task_meta()
