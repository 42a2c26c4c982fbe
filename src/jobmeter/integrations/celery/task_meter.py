"""Measures each task in the process, thread or greenlet that does its work: from `task_prerun` to `task_postrun`."""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

from jobmeter.api.blocks import outcome_of_error
from jobmeter.integrations.celery.killed_tasks import signal_of_exit
from jobmeter.integrations.celery.requirement import TaskRequirements
from jobmeter.integrations.celery.task_labels import STATE, labels_of
from jobmeter.integrations.celery.task_usage import UsageReport
from jobmeter.integrations.warnings import Warnings
from jobmeter.model import Outcome, Status
from jobmeter.session.block import Block
from jobmeter.session.enclosing_run import EnclosingRun
from jobmeter.session.measuring import MeasureOptions

_GREENLETS = ("gevent", "eventlet")
_ONE_AT_A_TIME = ("prefork", "solo")
_WELL = ("SUCCESS", "IGNORED", "REJECTED")
"""States of a task that count as completed."""


class _Running(NamedTuple):
    block: Block
    enclosing: EnclosingRun


class TaskMeter:
    """Starts and stops the blocks of tasks. No failure here reaches a task."""

    def __init__(
        self, options: MeasureOptions, requirements: TaskRequirements, pool: str, usage: UsageReport, warnings: Warnings
    ) -> None:
        self._options = options
        self._requirements = requirements
        self._pool = pool
        self._usage = usage
        self._warnings = warnings
        # By thread or greenlet, and id of the task: tasks may be nested, as an eager one in another.
        self._running: dict[tuple[int, str], _Running] = {}

    def on_prerun(self, task_id: str, task: Any, **_: Any) -> None:
        with self._warnings.instead_of_failing("this task is not measured"):
            self._begin(task_id, task)

    def on_postrun(self, task_id: str, state: str | None, retval: Any = None, **_: Any) -> None:
        error = sys.exc_info()[1]
        with self._warnings.instead_of_failing("the figures of this task are incomplete"):
            self._end(task_id, state, error if state is None else retval)

    def _begin(self, task_id: str, task: Any) -> None:
        requirement = self._requirements.of(task)
        if requirement is None or task.request.is_eager:
            return
        labels = labels_of(task.request, task.name, task.request.hostname or "")
        block = Block(
            self._options._replace(name=task.name, labels=labels),
            requirement,
            announced=True,
            own_thread=self._pool == "threads",
            # All tasks take turns in one thread, with the worker itself.
            interleaved=self._pool in _GREENLETS,
            warn=self._warnings.warn_once,
        )
        block.start()
        enclosing = EnclosingRun(block.id, for_processes=self._pool in _ONE_AT_A_TIME)
        self._running[_here(task_id)] = _Running(block, enclosing)
        self._usage.watch_results(task, task_id, block)

    def _end(self, task_id: str, state: str | None, value: Any) -> None:
        running = self._running.pop(_here(task_id), None)
        if running is None:
            return
        running.enclosing.leave()
        self._usage.forget(task_id)
        error = value if isinstance(value, BaseException) else None
        if not running.block.belongs_here:
            return  # this is a process that the task forked
        if self._pool == "prefork" and signal_of_exit(error) is not None:
            running.block.leave()  # the worker writes the record, as it knows why it ended this child
            return
        outcome = Outcome(Status.COMPLETED, 0) if state in _WELL else outcome_of_error(error)
        if state is not None and state not in _WELL and outcome.status == Status.COMPLETED:
            outcome = Outcome(Status.FAILED)
        raised = type(error).__name__ if error is not None and state not in _WELL else None
        record = running.block.stop(outcome, raised, {STATE: state} if state else {})
        self._usage.keep(task_id, record)


def _here(task_id: str) -> tuple[int, str]:
    """The key of a running task. A task that is delivered twice may run twice at once, in two threads."""
    return threading.get_ident(), task_id


def pool_name(pool: Any) -> str:
    """`prefork`, `solo`, `threads`, `gevent`, `eventlet`; for another pool, the name of its module."""
    module = pool if isinstance(pool, str) else str(getattr(pool, "__module__", ""))
    name = module.partition(":")[0].rpartition(".")[2]
    return {"thread": "threads", "processes": "prefork"}.get(name, name)
