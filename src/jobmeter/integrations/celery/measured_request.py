"""The requests of a worker's tasks (`Task.Request`): Celery calls their methods when a task is accepted, or ends."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from jobmeter.integrations.celery.task_usage import FIELD

if TYPE_CHECKING:
    from jobmeter.integrations.celery.measuring_worker import MeasuringWorker

_ENDS = ("task-succeeded", "task-failed", "task-retried")


@functools.cache
def measured_request(base: Any, worker: MeasuringWorker) -> Any:
    """A subclass of `base`, a class of requests, that also calls the worker which measures."""

    class MeasuredRequest(base):  # type: ignore[misc]
        def on_accepted(self, pid: int, time_accepted: float) -> None:
            worker.on_accepted()
            super().on_accepted(pid, time_accepted)

        def on_timeout(self, soft: bool, timeout: float) -> None:
            if not soft:
                worker.on_timeout(self)
            super().on_timeout(soft, timeout)

        def on_failure(self, exc_info: Any, *args: Any, **kwargs: Any) -> Any:
            error = exc_info.exception
            worker.on_failure(self, getattr(error, "exc", None) or error)
            return super().on_failure(exc_info, *args, **kwargs)

        def send_event(self, type: str, **fields: Any) -> None:
            if worker.adds_usage_to_events and type in _ENDS:
                usage = worker.usage_of(self)
                fields = fields if usage is None else {**fields, FIELD: usage}
            super().send_event(type, **fields)

    return MeasuredRequest
