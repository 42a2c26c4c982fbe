"""Which workers there are: they all answer a call, each with a beacon."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from jobmeter.engines.celery.broker import beacon_exchange, call_worker, in_plain_words
from jobmeter.engines.celery.placement import WorkerState

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Queue

_PATIENCE = 5.0
"""Seconds in which one of the workers, if there are any, must have answered."""
_SILENCE = 0.3
"""Seconds after an answer in which others must follow."""


def beacon_queue() -> Queue:
    """A queue of our own, in which all beacons arrive."""
    from kombu import Queue

    return Queue(f"jobmeter.beacons.{uuid.uuid4().hex}", beacon_exchange(), exclusive=True, auto_delete=True)


def discover(app: Celery, queue: str) -> list[WorkerState]:
    """The workers that take jobs of this queue. LaunchError when the broker cannot be used."""
    from kombu import Consumer

    states: dict[str, WorkerState] = {}

    def take(fields: dict[str, Any], message: Any) -> None:
        state = WorkerState.from_json(fields)
        if queue in state.queues and not state.closing:
            states[state.name] = state

    with in_plain_words(app), app.connection_for_read() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0.1)
        with Consumer(connection, [beacon_queue()], callbacks=[take], accept=["json"], no_ack=True):
            call_worker(app, None, "jobmeter_beacon")
            until = time.monotonic() + _PATIENCE
            while time.monotonic() < until:
                try:
                    connection.drain_events(timeout=_SILENCE)
                except TimeoutError:
                    if states:
                        break
    return list(states.values())
