"""A store, the workers that measure into it, and what they measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jobmeter
from tests.celery_workers import TaskWorker
from tests.waiting import wait_for
from tests.workflow.live import lives


class TaskPlace:
    def __init__(self, folder: Path, broker: str) -> None:
        self.folder = folder
        self.broker = broker
        self.store = folder / "store"
        self.workers: list[TaskWorker] = []

    def worker(self, *options: str, **more: Any) -> TaskWorker:
        """Another one; all of a place take tasks of the same queue."""
        queue = self.workers[0].queue if self.workers else None
        self.workers.append(TaskWorker(self.broker, self.store, *options, queue=queue, **more))
        return self.workers[-1]

    def runs(self, task: str = "*") -> list[jobmeter.Run]:
        """Of this task, oldest first."""
        names = f"tests.integrations.celery.project.{task}"
        return list(jobmeter.open_store(self.store).runs(name=names))[::-1]

    def run(self, task: str) -> jobmeter.Run:
        """The only run of this task, once it has ended."""

        def has_ended() -> bool:
            runs = self.runs(task)
            return bool(runs) and all(run.status != jobmeter.Status.RUNNING for run in runs)

        wait_for(has_ended, f"the end of {task}")
        (run,) = self.runs(task)
        return run

    def pids(self) -> list[int]:
        """The processes in which tasks wait."""
        path = self.folder / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def release(self) -> None:
        (self.folder / "end").touch()

    def close(self) -> None:
        self.release()
        for worker in self.workers:
            worker.close()
        assert [] == [pid for pid in self.pids() if lives(pid)]
