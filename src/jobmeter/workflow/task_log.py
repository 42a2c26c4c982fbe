"""Which tasks a runner started, and how their engine finds them again: `tasks.jsonl` beside the plan.

A line is written before its task can run. What a killed runner left are the newest tasks of those jobs that have no
end in the journal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from jobmeter.engines.contract import Task, Token
from jobmeter.model import Requirement
from jobmeter.workflow.line_log import LineLog, read_lines


class StartedTask(NamedTuple):
    """A task as its runner noted it."""

    number: int
    attempt: int
    engine: str
    fingerprint: str  # of the job as it was then
    requirement: Requirement
    token: Token


class TaskLog(LineLog):
    """Append only; any thread may."""

    def __init__(self, path: str, engine: str) -> None:
        """StoreError when it cannot be written."""
        super().__init__(path)
        self._engine = engine

    def add(self, task: Task, token: Token) -> None:
        """OSError when it cannot be written: then nobody would find the task again."""
        self.append(
            {
                "job": task.number,
                "attempt": task.attempt,
                "engine": self._engine,
                "fingerprint": task.workflow["fingerprint"],
                "requirement": task.requirement.requested(),
                "token": token,
            }
        )


def unended_tasks(path: str, ended: Collection[tuple[int, int]]) -> list[StartedTask]:
    """The newest task of each job, unless its (job, attempt) is among the `ended`."""
    newest: dict[int, StartedTask] = {}
    for task in _read(path):
        newest[task.number] = task
    return [task for task in newest.values() if (task.number, task.attempt) not in ended]


def _read(path: str) -> Iterable[StartedTask]:
    for entry in read_lines(path):
        try:
            yield StartedTask(
                entry["job"],
                entry["attempt"],
                entry["engine"],
                entry["fingerprint"],
                Requirement(**entry["requirement"]),
                entry["token"],
            )
        except (KeyError, TypeError):
            continue  # damaged
