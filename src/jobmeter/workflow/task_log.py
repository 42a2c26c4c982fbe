"""Which tasks a runner started, and how their engine finds them again: `tasks.jsonl` beside the plan.

A line is written before its task can run. What a killed runner left are the newest tasks of those jobs that have no
end in the journal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from typing import NamedTuple

from jobmeter.engines.contract import Task, Token
from jobmeter.errors import StoreError
from jobmeter.journal.writer import encode
from jobmeter.model import Requirement


class StartedTask(NamedTuple):
    """A task as its runner noted it."""

    number: int
    attempt: int
    engine: str
    fingerprint: str  # of the job as it was then
    requirement: Requirement
    token: Token


class TaskLog:
    """Append only; any thread may."""

    def __init__(self, path: str, engine: str) -> None:
        """StoreError when it cannot be written."""
        self._engine = engine
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None

    def add(self, task: Task, token: Token) -> None:
        """OSError when it cannot be written: then nobody would find the task again."""
        line = encode(
            {
                "job": task.number,
                "attempt": task.attempt,
                "engine": self._engine,
                "fingerprint": task.workflow["fingerprint"],
                "requirement": task.requirement.requested(),
                "token": token,
            }
        )
        # Appended in one piece, so that lines of several threads stay whole.
        os.write(self._descriptor, line)

    def sync(self) -> None:
        """Have what was written survive a crash of the machine."""
        try:
            os.fsync(self._descriptor)
        except OSError:
            pass  # the journal's own sync reports a disk that fails

    def close(self) -> None:
        os.close(self._descriptor)


def unended_tasks(path: str, ended: Collection[tuple[int, int]]) -> list[StartedTask]:
    """The newest task of each job, unless its (job, attempt) is among the `ended`."""
    newest: dict[int, StartedTask] = {}
    for task in _read(path):
        newest[task.number] = task
    return [task for task in newest.values() if (task.number, task.attempt) not in ended]


def _read(path: str) -> Iterable[StartedTask]:
    try:
        with open(path, "rb") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return  # nothing was started
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    for line in lines:
        try:
            entry = json.loads(line)
            yield StartedTask(
                entry["job"],
                entry["attempt"],
                entry["engine"],
                entry["fingerprint"],
                Requirement(**entry["requirement"]),
                entry["token"],
            )
        except (ValueError, KeyError, TypeError):
            continue  # torn: the machine crashed while it was written
