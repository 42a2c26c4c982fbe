"""A worker that measures its tasks: the meter, and what the worker process itself learns about their ends."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from jobmeter.integrations.celery.killed_tasks import (
    EndedTask,
    KilledTasks,
    ended_task,
    outcome_of_loss,
    signal_of_exit,
)
from jobmeter.integrations.celery.measured_request import measured_request
from jobmeter.integrations.celery.requirement import TaskRequirements
from jobmeter.integrations.celery.task_meter import TaskMeter, pool_name
from jobmeter.integrations.celery.task_usage import UsageReport
from jobmeter.integrations.warnings import Warnings
from jobmeter.model import Outcome, Status
from jobmeter.session.measuring import MeasureOptions

if TYPE_CHECKING:
    from celery import Celery


class MeasuringWorker:
    """Measures the tasks of one worker, or of one child of it that was not forked."""

    def __init__(
        self,
        app: Celery,
        options: MeasureOptions,
        requirements: TaskRequirements,
        pool: Any,
        usage_in: frozenset[str],
        warnings: Warnings,
    ) -> None:
        self._app = app
        self._requirements = requirements
        self._warnings = warnings
        self._pool = pool_name(pool)
        self._usage = UsageReport(usage_in, warnings)
        self._meter = TaskMeter(options, requirements, self._pool, self._usage, warnings)
        self._killed = KilledTasks(str(options.store), warnings)
        self.hostname = ""

    def begin(self, hostname: str | None) -> None:
        from celery import signals

        signals.task_prerun.connect(self._meter.on_prerun, weak=False, dispatch_uid="jobmeter-prerun")
        signals.task_postrun.connect(self._meter.on_postrun, weak=False, dispatch_uid="jobmeter-postrun")
        if hostname is None:
            return
        self.hostname = hostname
        if self._pool == "prefork" or self._usage.in_events:
            from celery.utils.imports import symbol_by_name

            for task in self._app.tasks.values():
                if self._requirements.of(task) is not None:
                    task.Request = measured_request(symbol_by_name(task.Request), self)

    def begin_child(self) -> None:
        """In a forked child of the pool; or in the worker itself, if its pool forks none."""
        if self._pool == "prefork":
            self._killed.adopt_this_process()

    # Called by the requests, in the worker itself.

    def on_accepted(self) -> None:
        self._killed.oom_kills.look()

    def on_timeout(self, request: Any) -> None:
        with self._warnings.instead_of_failing("a task that was killed has no record"):
            self._killed.end_when_gone(self._ended(request, Outcome(Status.TIMEOUT, None, signal.SIGKILL)))

    def on_failure(self, request: Any, error: BaseException) -> None:
        with self._warnings.instead_of_failing("a task that was killed has no record"):
            from celery.exceptions import Terminated, WorkerLostError

            if request.worker_pid is None:
                return
            number = signal_of_exit(error)
            is_revoked = request._already_revoked or request._already_cancelled
            if isinstance(error, Terminated) or (number is not None and is_revoked):
                ended = self._ended(request, Outcome(Status.CANCELLED, None, number or _signal_of(error)), "REVOKED")
            elif number is not None:
                ended = self._ended(request, Outcome(Status.KILLED, None, number))
            elif isinstance(error, SystemExit):
                ended = self._ended(request, Outcome(Status.FAILED, error.code if isinstance(error.code, int) else 1))
            elif isinstance(error, WorkerLostError):
                ended = self._ended(request, outcome_of_loss(str(error), self._killed.oom_kills))
            else:
                return
            # billiard may report an exit before the child has gone.
            if isinstance(error, SystemExit):
                self._killed.end_when_gone(ended)
            else:
                self._killed.end(ended)

    def _ended(self, request: Any, outcome: Outcome, state: str = "FAILURE") -> EndedTask:
        return ended_task(request, self.hostname, state, outcome)

    def usage_of(self, request: Any) -> dict[str, Any] | None:
        with self._warnings.instead_of_failing("an event has no usage"):
            pid = request.worker_pid if self._pool == "prefork" else None
            return self._usage.of_ended(request.id, self._killed.journal_of(pid) if pid else None)
        return None

    @property
    def adds_usage_to_events(self) -> bool:
        return self._usage.in_events


def _signal_of(error: BaseException) -> int | None:
    """The signal of a `Terminated`, whose argument is its number; None if it has no number."""
    number = error.args[0] if error.args else None
    return abs(number) if isinstance(number, int) and number else None
