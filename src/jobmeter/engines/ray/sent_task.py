"""A task that was given to the cluster, as its runner sees it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from jobmeter.engines.contract import Task
from jobmeter.engines.ray.room import Need
from jobmeter.engines.reporting_task import ReportedTask


class SentTask(ReportedTask):
    """Puts the reports of one task in order: the last are the Ray task's result, the others come by the mailbox."""

    def __init__(self, task: Task, need: Need) -> None:
        super().__init__(task.number, {"stdout": task.stdout, "stderr": task.stderr})
        self.id = uuid.uuid4().hex
        self.order = task
        self.need = need
        self.node = ""  # where it runs; not known until it reports
        self.cancelled_at: float | None = None
        self._received = 0
        self._early: dict[int, list[Any]] = {}

    def in_order(self, first: int, reports: list[list[Any]]) -> Iterator[list[Any]]:
        """The reports that can be taken now. Reports after a gap wait, and those that come again are left out."""
        self._early.update((number, report) for number, report in enumerate(reports, first) if number >= self._received)
        while self._received in self._early:
            report = self._early.pop(self._received)
            self._received += 1
            yield report
