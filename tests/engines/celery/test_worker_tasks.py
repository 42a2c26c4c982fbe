"""The jobs of one worker, with real processes and without a broker."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from jobmeter.engines.celery.worker_tasks import Order, WorkerTasks
from jobmeter.engines.contract import Capacity, Measure, Task
from jobmeter.engines.shared_files import Marker, MarkerFile
from jobmeter.model import Requirement
from tests.engines.test_reporting_task import FAR
from tests.waiting import LONG, wait_for

USUAL = Measure()


class OneByOne(WorkerTasks):
    """Signals the next task when the last has ended: as late as a busy machine may."""

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        task = self._numbers.get(number or 0)
        super().cancel(number, at_once=at_once)
        if task is not None:
            assert task.ended.wait(LONG)


def order(folder: Path, number: int, command: str, marker: Marker = (), measure: Measure = USUAL) -> Order:
    out = f"{folder}/out{number}"
    workflow: Any = {"id": "w", "name": "w", "run_id": 1, "job_id": number, "attempt": 1}
    words = ["sh", "-c", command]
    task = Task(number, 1, f"job{number}", words, str(folder), {}, out, out, workflow, Requirement(1), measure=measure)
    marker = marker or MarkerFile().made_in(str(folder))
    return Order({"task": task.as_json(), "reply_to": "replies", "timeout": 60.0, "marker": marker})


def begun(tasks: WorkerTasks, name: str, order: Order) -> threading.Thread:
    """The thread that runs a task, as one of Celery's does."""
    thread = threading.Thread(target=tasks.run, args=(name, order), daemon=True)
    thread.start()
    return thread


def test_of_tasks_that_are_cancelled_together_none_begins_in_the_room_of_another(tmp_path: Path) -> None:
    reports: list[tuple[str, list[Any]]] = []
    tasks = OneByOne(Capacity(cpus=1), lambda queue, task, number, report: reports.append((task, report)))
    commands = {"runs": "touch begun; exec sleep 600", "waits": "touch never"}
    threads = []
    for number, (name, command) in enumerate(commands.items(), 1):
        threads.append(threading.Thread(target=tasks.run, args=(name, order(tmp_path, number, command))))
        threads[-1].start()
        wait_for(lambda name=name: name in tasks.tasks, f"that the worker has {name!r}")  # type: ignore[misc]
        wait_for((tmp_path / "begun").exists, "that the first job runs")
    tasks.cancel_tasks(commands, at_once=False)
    for thread in threads:
        thread.join(LONG)
    tasks.close()
    ends = {task: report[1]["outcome"]["status"] for task, report in reports if report[0] == "ended"}
    assert {"runs": "cancelled", "waits": "cancelled"} == ends
    assert not (tmp_path / "never").exists()


def test_a_task_whose_output_finds_no_place_is_lost_and_leaves_its_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[list[Any]] = []
    tasks = WorkerTasks(Capacity(cpus=1), lambda queue, task, number, report: reports.append(report))
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}/none")  # as TMPDIR would
    begun(tasks, "far", order(tmp_path, 1, "true", FAR)).join(LONG)
    left = (*tasks.overview(), tasks.running())
    begun(tasks, "near", order(tmp_path, 2, "true")).join(LONG)
    tasks.close()
    assert ({"far": [1, True]}, tasks.capacity_here, []) == left
    kind, record, why = reports[0]
    assert ("ended", None) == (kind, record)
    assert f"No such file or directory: '{tmp_path}/none/" in why
    assert "completed" == reports[-1][1]["outcome"]["status"]


def test_a_task_that_is_cancelled_before_it_begins_needs_no_place_for_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[list[Any]] = []
    tasks = WorkerTasks(Capacity(cpus=1), lambda queue, task, number, report: reports.append(report))
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}/none")
    tasks.cancel_tasks(["far"], at_once=False)
    begun(tasks, "far", order(tmp_path, 1, "true", FAR)).join(LONG)
    tasks.close()
    assert ["cancelled"] == [report[1]["outcome"]["status"] for report in reports if report[0] == "ended"]


def test_a_task_that_cannot_even_be_recorded_is_lost_alone(tmp_path: Path) -> None:
    reports: list[tuple[str, list[Any]]] = []
    tasks = WorkerTasks(Capacity(cpus=2), lambda queue, task, number, report: reports.append((task, report)))
    good = begun(tasks, "good", order(tmp_path, 1, "touch begun; until [ -e end ]; do sleep 0.02; done"))
    wait_for((tmp_path / "begun").exists, "that the first job runs")
    # Its runner has a plug-in that this worker lacks.
    begun(tasks, "bad", order(tmp_path, 2, "true", measure=Measure(measurements=["solar_power"]))).join(LONG)
    running = [task.id for task in tasks.running()]
    (tmp_path / "end").touch()
    good.join(LONG)
    tasks.close()
    assert ["good"] == running
    ends = {task: report[1:] for task, report in reports if report[0] == "ended"}
    assert "completed" == ends["good"][0]["outcome"]["status"]
    assert (None, True) == (ends["bad"][0], "solar_power" in ends["bad"][1])
