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
"""Seconds after an answer in which others must follow, at least."""
_SLOWER = 4.0
"""Times the wait for the first answer that another may take: where that was slow, machines are busy, or far away."""


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

    first: float | None = None  # seconds to the first answer
    with in_plain_words(app), app.connection_for_read() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0.1)
        with Consumer(connection, [beacon_queue()], callbacks=[take], accept=["json"], no_ack=True):
            call_worker(app, None, "jobmeter_beacon")
            asked = time.monotonic()
            while time.monotonic() < asked + _PATIENCE:
                try:
                    connection.drain_events(timeout=max(_SILENCE, _SLOWER * (first or 0.0)))
                except TimeoutError:
                    if states:
                        break
                if states and first is None:
                    first = time.monotonic() - asked
    return list(states.values())
