"""What a runner sends to workers: tasks, and commands about these tasks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from jobmeter.engines.celery.broker import RUN, broker_errors, call_worker, make_queue, task_queue, translate_errors
from jobmeter.engines.celery.sent_task import SentTask
from jobmeter.engines.contract import Task
from jobmeter.engines.shared_files import MarkerFile

if TYPE_CHECKING:
    from celery import Celery


class Orders:
    """Sends the messages of one runner. Each may get lost: a caller that needs its effect sends it again."""

    def __init__(self, app: Celery, replies: str, timeout: float) -> None:
        """Workers reply to the queue `replies`; without contact to the broker for nearly `timeout`, they end tasks."""
        self._app = app
        self._replies = replies
        self._timeout = timeout
        self._marker = MarkerFile()

    def send(self, sent: SentTask, task: Task) -> None:
        """Give a task to the worker that was chosen for it."""
        sent.last_sent = time.monotonic()
        order = {
            "task": task.as_json(),
            "reply_to": self._replies,
            "timeout": self._timeout,
            "marker": self._marker.made_in(os.path.dirname(task.stdout)),
        }
        with self._while_broker_is_there():
            self._app.send_task(
                RUN, args=[sent.id, order], task_id=sent.id, queue=make_queue(task_queue(sent.worker or ""))
            )

    def request_reports(self, sent: SentTask) -> None:
        """Have a worker send the reports about a task again, from the first that did not arrive."""
        with self._while_broker_is_there():
            call_worker(
                self._app, sent.worker, "jobmeter_send_again", task=sent.id, first=sent.received, reply_to=self._replies
            )

    def end_left(self, worker: str, task: str) -> None:
        """End one task that a killed runner left, with SIGTERM first, and have its worker report its state at once.

        Raises LaunchError if the broker cannot be used: what the worker then has is not known.
        """
        with translate_errors(self._app):
            call_worker(self._app, worker, "jobmeter_cancel", ids=[task], at_once=False)
            call_worker(self._app, worker, "jobmeter_beacon")

    def cancel(self, tasks: Iterable[SentTask]) -> None:
        """End those of the tasks that are marked as cancelled."""
        by_worker: dict[tuple[bool, str], list[str]] = {}
        for sent in tasks:
            if sent.cancelled and sent.worker is not None:
                by_worker.setdefault((sent.at_once, sent.worker), []).append(sent.id)
        for (at_once, worker), ids in sorted(by_worker.items()):
            with self._while_broker_is_there():
                call_worker(self._app, worker, "jobmeter_cancel", ids=ids, at_once=at_once)

    def forget(self, tasks: Mapping[str, list[str]]) -> None:
        """Have workers forget tasks whose end was received."""
        for worker, ids in tasks.items():
            with self._while_broker_is_there():
                call_worker(self._app, worker, "jobmeter_forget", ids=ids)

    def close(self) -> None:
        self._marker.remove()

    @contextlib.contextmanager
    def _while_broker_is_there(self) -> Iterator[None]:
        """Ignore that the broker cannot be used: `Dispatch.check_workers` sends again what could not be sent."""
        with contextlib.suppress(*broker_errors(self._app)):
            yield
