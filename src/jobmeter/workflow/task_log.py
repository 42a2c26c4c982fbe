"""Which tasks a runner started, and how their engine finds them again: `tasks.jsonl` next to the plan.

A line is written before its task can run. The tasks that a killed runner left are the newest task of each job, if its
end is not in the journal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from jobmeter.engines.contract import Task, Token
from jobmeter.model import Requirement
from jobmeter.workflow.line_log import LineLog, read_lines


class StartedTask(NamedTuple):
    """A task as its runner wrote it to the log."""

    number: int
    attempt: int
    engine: str
    fingerprint: str  # of the job as it was then
    requirement: Requirement
    token: Token
    engine_options: Mapping[str, str] = {}  # with which the engine was loaded, except secrets


class TaskLog(LineLog):
    """The file of started tasks, for their runner. Any thread may add to it."""

    def __init__(self, path: str, engine: str, engine_options: Mapping[str, str] = {}) -> None:
        """Open the file, created if missing. Raises StoreError if it cannot be opened."""
        super().__init__(path)
        self._engine = engine
        self._engine_options = dict(engine_options)

    def add(self, task: Task, token: Token) -> None:
        """Append a task. Raises OSError if it cannot be written: then the task could not be found again."""
        self.append(
            {
                "job": task.number,
                "attempt": task.attempt,
                "engine": self._engine,
                "engine_options": self._engine_options,
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
                {str(name): str(value) for name, value in dict(entry.get("engine_options", {})).items()},
            )
        except (KeyError, TypeError, ValueError):
            continue  # damaged
