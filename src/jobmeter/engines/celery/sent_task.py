"""A task that was given to a worker, as its runner sees it."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Mapping
from typing import Any

from jobmeter.engines.celery.placement import Need, need_of
from jobmeter.engines.contract import Task, Token
from jobmeter.engines.reporting_task import ReportedTask
from jobmeter.journal.writer import RunJournal


class SentTask(ReportedTask):
    """Takes the reports of one task, each once and in their order."""

    def __init__(self, number: int, task_id: str, logs: Mapping[str, str], worker: str | None = None) -> None:
        """`logs` are the paths of stdout and stderr."""
        super().__init__(number, logs)
        self.id = task_id
        self.worker = worker
        self.order: Task | None = None  # None: adopted; only its worker knows what to run
        self.need = Need({})
        self.cancelled = self.at_once = False
        self.reported = False  # a beacon of its worker lists it: its need is no part of what is free there
        self.received = 0  # number of reports
        self.last_sent = self.last_received = time.monotonic()

    @classmethod
    def new(cls, task: Task) -> SentTask:
        sent = cls(task.number, uuid.uuid4().hex, {"stdout": task.stdout, "stderr": task.stderr})
        sent.order, sent.need = task, need_of(task.requirement, task.container)
        return sent

    @classmethod
    def adopted(cls, number: int, token: Token) -> SentTask:
        """A task of a runner that was killed, by its token."""
        return cls(number, token["task"], token["logs"], token["worker"])

    @property
    def has_not_begun(self) -> bool:
        """Whether the task still waits at its worker, as far as is known. A worker without contact starts no task."""
        return self.received == 0 and not self.cancelled and self.order is not None

    def token(self) -> Token:
        return {"worker": self.worker, "task": self.id, "logs": dict(self.logs)}

    def is_next(self, number: int | None) -> bool:
        """Count a report as received if it is the next one. False if it came before, or comes after a gap."""
        if number != self.received:
            return False
        self.received += 1
        self.last_received = time.monotonic()
        return True

    def take(self, report: list[Any], journal: RunJournal) -> None:
        if report[0] == "output":
            report = [*report[:3], base64.b64decode(report[3])]  # JSON has no bytes
        super().take(report, journal)
