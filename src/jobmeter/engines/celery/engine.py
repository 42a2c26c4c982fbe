"""The engine `celery`: the runner's side. The workers are started separately."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from jobmeter.engines.celery.broker import (
    DEFAULT_BROKER,
    DEFAULT_QUEUE,
    PROTOCOL,
    broker_address,
    make_app,
    reply_queue,
    shown,
)
from jobmeter.engines.celery.discovery import discover
from jobmeter.engines.celery.dispatch import Dispatch
from jobmeter.engines.celery.inbox import Inbox
from jobmeter.engines.celery.known_workers import KnownWorkers
from jobmeter.engines.celery.orders import Orders
from jobmeter.engines.celery.placement import AMOUNTS, Need, WorkerState, can_run
from jobmeter.engines.contract import (
    Capabilities,
    Capacity,
    EngineOption,
    LeftTask,
    Receiver,
    Recovered,
    Task,
)
from jobmeter.errors import LaunchError, UsageError
from jobmeter.model import Requirement, Value
from jobmeter.settings import positive_seconds

if TYPE_CHECKING:
    from celery import Celery

WORKER_TIMEOUT = 30.0
"""Seconds without a beacon after which a worker counts as dead."""


class CeleryEngine:
    """Runs jobs on workers, on any machine, through a broker."""

    options: Sequence[EngineOption] = (
        EngineOption("broker", "URL", f"where the Celery broker is (default: JOBMETER_BROKER, else {DEFAULT_BROKER})"),
        EngineOption("queue", "NAME", f"use the workers of this queue (default: {DEFAULT_QUEUE})"),
        EngineOption(
            "worker-timeout", "TIME", "count a worker as dead after this time without a sign of life (default: 30s)"
        ),
    )
    capabilities = Capabilities(shares_files=False, retries_elsewhere=True, has_queue=True)

    def __init__(self, options: Mapping[str, str] = {}) -> None:
        self._broker = broker_address(options.get("broker"))
        self._queue = options.get("queue") or DEFAULT_QUEUE
        self._timeout = WORKER_TIMEOUT
        if "worker-timeout" in options:
            try:
                self._timeout = positive_seconds(options["worker-timeout"])
            except UsageError as error:
                raise UsageError(f"--worker-timeout: {error}") from None
        self._app_made: Celery | None = None
        self._workers = KnownWorkers()
        self._orders: Orders
        self._dispatch: Dispatch
        self._inbox: Inbox | None = None

    @property
    def _app(self) -> Celery:
        if self._app_made is None:
            self._app_made = make_app(self._broker)
        return self._app_made

    def check(self, container_runtimes: Collection[str] = ()) -> None:
        workers = self._discover()
        if not workers:
            raise LaunchError(
                f"no worker of queue {self._queue!r} answers at {shown(self._app)}. "
                f"Start one on each machine that shall run jobs: jobmeter worker --broker URL"
            )
        for worker in workers:
            if worker.protocol != PROTOCOL:
                from jobmeter import __version__

                raise LaunchError(
                    f"worker {worker.name} is of jobmeter {worker.version}, which does not understand this one "
                    f"({__version__}). Install the same version on both machines."
                )
        for runtime in sorted(container_runtimes):
            if not any(can_run(worker, Need({}, runtime), self._queue) for worker in workers):
                name = "a container runtime" if runtime == "auto" else runtime
                raise LaunchError(f"no worker of queue {self._queue!r} has {name}")

    def capacity(self) -> Capacity:
        """The most that one job may request: what the largest worker has. Jobs that do not fit yet wait here."""
        workers = list(self._workers.states.values()) or self._discover()
        most = {name: max((worker.capacity.get(name, 0) for worker in workers), default=0) for name in AMOUNTS}
        return Capacity(largest=Requirement(most["cpus"], int(most["memory_bytes"]), None, int(most["gpus"])))

    def open(self, receiver: Receiver) -> None:
        replies = reply_queue()
        self._orders = Orders(self._app, replies, self._timeout)
        self._dispatch = Dispatch(self._workers, self._orders, receiver, self._queue, self._timeout)
        self._inbox = Inbox(self._app, replies, self._dispatch, receiver.broke)
        self._inbox.open()

    def start(self, task: Task) -> None:
        self._dispatch.start(task)

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        self._dispatch.cancel(number, at_once=at_once)

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        """Adopt the wanted tasks, which kept running without a runner, with all their reports. End the others."""
        ended, adopted = 0, set()
        for left in tasks:
            task, worker = str(left.token.get("task")), str(left.token.get("worker"))
            state = self._await_beacon(worker)
            if state is None:
                continue  # the worker is dead, and its jobs ended with it
            if left.wanted and task in state.tasks:
                adopted.add(left.number)
                self._dispatch.adopt(left.number, left.token)
            else:
                ended += self._end_left(worker, task)
        return Recovered(ended, frozenset(adopted))

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        return self._dispatch.levels()

    def close(self) -> None:
        if self._inbox is not None:
            self._inbox.close()
            self._orders.close()

    def _discover(self) -> list[WorkerState]:
        """The workers of the queue that answer."""
        workers = discover(self._app, self._queue)
        self._workers.set_all(workers)
        return workers

    # What a killed runner left.

    def _await_beacon(self, worker: str, after: float = 0.0) -> WorkerState | None:
        """The state that a worker reports later than `after`; None if none comes until it counts as dead."""
        until = time.monotonic() + self._timeout
        while time.monotonic() < until:
            if self._workers.heard_at(worker) > after:
                return self._workers.states[worker]
            time.sleep(0.02)
        return None

    def _end_left(self, worker: str, task: str) -> int:
        """End a task that is not wanted, also if its worker does not have it yet. Returns 1 if it still ran, else 0."""
        running = 0
        while True:
            sent = time.monotonic()
            self._orders.end_left(worker, task)
            state = self._await_beacon(worker, sent)
            if state is None or state.has_ended(task):
                self._workers.note_ended(worker, task)
                return running
            running = 1
            time.sleep(0.1)
