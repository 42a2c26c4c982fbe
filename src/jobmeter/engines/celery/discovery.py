"""Finds the workers: each of them answers a command to all with a beacon."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from jobmeter.engines.celery.broker import beacon_exchange, call_worker, translate_errors
from jobmeter.engines.celery.placement import WorkerState

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Queue

_PATIENCE = 5.0
"""Seconds to wait for answers. If there are workers, at least one must have answered by then."""
_SILENCE = 0.3
"""Seconds to wait after an answer for another one, at least."""
_SLOWER = 4.0
"""Another answer may take this many times as long as the first: if that was slow, machines are busy, or far away."""


def beacon_queue() -> Queue:
    """A new queue for this process alone, in which all beacons arrive."""
    from kombu import Queue

    return Queue(f"jobmeter.beacons.{uuid.uuid4().hex}", beacon_exchange(), exclusive=True, auto_delete=True)


def discover(app: Celery, queue: str) -> list[WorkerState]:
    """The workers that take jobs of this queue. Raises LaunchError if the broker cannot be used."""
    from kombu import Consumer

    states: dict[str, WorkerState] = {}

    def take(fields: dict[str, Any], message: Any) -> None:
        state = WorkerState.from_json(fields)
        if queue in state.queues and not state.closing:
            states[state.name] = state

    first: float | None = None  # seconds to the first answer
    with translate_errors(app), app.connection_for_read() as connection:
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
