"""The thread in which a runner receives what workers report, through the broker."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jobmeter.engines.celery.broker import call_worker, make_queue, translate_errors
from jobmeter.engines.celery.discovery import beacon_queue
from jobmeter.engines.celery.dispatch import Dispatch
from jobmeter.engines.celery.placement import WorkerState
from jobmeter.errors import LaunchError

if TYPE_CHECKING:
    from celery import Celery

_CHECK_SECONDS = 0.5
"""Seconds between two calls of `Dispatch.check_workers`."""


class Inbox:
    """Passes replies and beacons to a `Dispatch`, and calls its `check_workers`. Reconnects if the broker was away."""

    def __init__(self, app: Celery, replies: str, dispatch: Dispatch, broke: Callable[[Exception], None]) -> None:
        """`replies` is the queue that workers reply to; `broke` is called if receiving fails for good."""
        self._app = app
        self._replies = replies
        self._dispatch = dispatch
        self._broke = broke
        self._ready = threading.Event()
        self._failed: LaunchError | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobmeter-celery", daemon=True)

    def open(self) -> None:
        """Start to receive; returns when messages can arrive. Raises LaunchError if the broker cannot be used."""
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with translate_errors(self._app):
                    self._receive()
            except LaunchError as error:
                if not self._ready.is_set():
                    self._failed = error
                    self._ready.set()
                    return
                self._closed.wait(0.3)
                self._dispatch.restart_timeouts()
            except Exception as error:  # noqa: BLE001 - an exception in this thread would go unnoticed
                self._broke(error)
                self._ready.set()
                return

    def _receive(self) -> None:
        from kombu import Consumer

        with self._app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.1)
            with (
                Consumer(connection, [make_queue(self._replies)], callbacks=[self._take_reply], accept=["json"]),
                Consumer(
                    connection.channel(), [beacon_queue()], callbacks=[self._take_beacon], accept=["json"], no_ack=True
                ),
            ):
                call_worker(self._app, None, "jobmeter_beacon")
                self._ready.set()
                next_check = time.monotonic()
                while not self._closed.is_set():
                    with contextlib.suppress(TimeoutError):
                        connection.drain_events(timeout=0.1)
                    if time.monotonic() >= next_check:
                        next_check = time.monotonic() + _CHECK_SECONDS
                        self._dispatch.check_workers()
                make_queue(self._replies)(connection.default_channel).delete()
                self._dispatch.forget_ended()

    def _take_reply(self, fields: dict[str, Any], message: Any) -> None:
        self._dispatch.take_reports(fields["reports"])
        message.ack()

    def _take_beacon(self, fields: dict[str, Any], message: Any) -> None:
        self._dispatch.take_beacon(WorkerState.from_json(fields))
