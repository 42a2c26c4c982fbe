"""The events of a running workflow, and how they get from the threads of the engine to the thread of the runner."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import NamedTuple, Union

from jobmeter.engines.contract import Ended, Task, Token
from jobmeter.journal.writer import RunJournal
from jobmeter.workflow.control import CancelJob
from jobmeter.workflow.journal import WorkflowJournal
from jobmeter.workflow.task_log import TaskLog


class Stop(NamedTuple):
    """A request to end all jobs and start no more."""

    at_once: bool


Event = Union[Ended, Stop, CancelJob, Exception]
"""What the runner's thread handles. An exception is the error that broke the engine."""


class EventReceiver:
    """Receives what the engine reports. The ends of tasks wait in a queue for the runner's thread."""

    def __init__(
        self,
        journal: WorkflowJournal,
        tasks: TaskLog,
        events: queue.SimpleQueue[Event],
        warn: Callable[[str], None],
    ) -> None:
        self.journal: RunJournal = journal
        self.warn = warn
        self._tasks = tasks
        self._events = events

    def keep_token(self, task: Task, token: Token) -> None:
        try:
            self._tasks.add(task, token)
        except OSError as error:
            # As with the journal, a full disk is no reason not to run the job.
            self.warn(f"if this runner is killed, `workflow resume` will not find its jobs: {error.strerror}")

    def ended(self, ended: Ended) -> None:
        self._events.put(ended)

    def broke(self, error: Exception) -> None:
        self._events.put(error)
