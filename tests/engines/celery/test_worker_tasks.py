"""The jobs of one worker, with real processes and without a broker."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from jobmeter.engines.celery.worker_tasks import Order, WorkerTasks
from jobmeter.engines.contract import Capacity, Measure, Task
from jobmeter.engines.shared_files import MarkerFile
from jobmeter.model import Requirement
from tests.waiting import LONG, wait_for


class OneByOne(WorkerTasks):
    """Signals the next task when the last has ended: as late as a busy machine may."""

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        task = self._numbers.get(number or 0)
        super().cancel(number, at_once=at_once)
        if task is not None:
            assert task.ended.wait(LONG)


def order(folder: Path, number: int, command: str) -> Order:
    out = f"{folder}/out{number}"
    workflow: Any = {"id": "w", "name": "w", "run_id": 1, "job_id": number, "attempt": 1}
    words = ["sh", "-c", command]
    task = Task(
        number, 1, f"job{number}", words, str(folder), {}, out, out, workflow, Requirement(1), measure=Measure()
    )
    marker = MarkerFile().made_in(str(folder))
    return Order({"task": task.as_json(), "reply_to": "replies", "timeout": 60.0, "marker": marker})


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
