"""A worker: a process that takes jobs from a Celery broker and runs them on this machine."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter import __version__
from jobmeter.engines.celery.broker import (
    BEACON_SECONDS,
    PROTOCOL,
    RUN,
    beacon_exchange,
    broker_errors,
    make_app,
    make_queue,
    task_queue,
    translate_errors,
)
from jobmeter.engines.celery.worker_tasks import Order, WorkerTasks
from jobmeter.engines.contract import Capacity
from jobmeter.errors import JobmeterError

if TYPE_CHECKING:
    from celery import Celery

MOST_TASKS = 1000
"""Jobs that a worker takes at one time, whatever they request. Each has a thread that waits for it."""


class Outbox:
    """Sends the reports of tasks, and a beacon every second, in a separate thread and connection."""

    def __init__(
        self, app: Celery, worker: str, beacon: Callable[[], dict[str, Any]], tick: Callable[[], None]
    ) -> None:
        """`tick` is called once for every beacon, in the thread that sends."""
        self._app = app
        self._worker = worker
        self._beacon = beacon
        self._tick = tick
        self._reports: queue.SimpleQueue[tuple[str, list[Any]] | None] = queue.SimpleQueue()
        self._closed = False
        self.last_contact = time.monotonic()
        self._next_beacon = 0.0
        self._thread = threading.Thread(target=self._run, name="jobmeter-outbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, reply_to: str, task: str, number: int | None, report: list[Any]) -> None:
        self._reports.put((reply_to, [task, number, report]))

    def beacon_now(self) -> None:
        self._next_beacon = 0.0
        self._reports.put(None)

    def close(self) -> None:
        """Send what is left. Gives up if the broker cannot be used, or after some seconds."""
        self._closed = True
        self._reports.put(None)
        self._thread.join(timeout=10)

    def _run(self) -> None:
        batch: dict[str, list[list[Any]]] = {}
        while True:
            try:
                with self._app.connection_for_write() as connection:
                    producer = connection.Producer(serializer="json")
                    while self._send_next(producer, batch):
                        pass
                    return
            except broker_errors(self._app):
                if self._closed:
                    return
                time.sleep(0.2)

    def _send_next(self, producer: Any, batch: dict[str, list[list[Any]]]) -> bool:
        """Send what waits, and a beacon if it is due; what fails stays in `batch`. False if closed and all is sent."""
        if not batch:
            self._collect(batch)
        for reply_to in list(batch):
            producer.publish(
                {"worker": self._worker, "reports": batch[reply_to]},
                routing_key=reply_to,
                declare=[make_queue(reply_to)],
            )
            del batch[reply_to]
        if time.monotonic() >= self._next_beacon or self._closed:
            producer.publish(self._beacon(), exchange=beacon_exchange(), declare=[beacon_exchange()])
            self._next_beacon = time.monotonic() + BEACON_SECONDS
            self._tick()
        self.last_contact = time.monotonic()
        return not (self._closed and self._reports.empty())

    def _collect(self, batch: dict[str, list[list[Any]]]) -> None:
        """Wait for a report, or for the time of the next beacon; put all reports that wait into the batch."""
        try:
            item = self._reports.get(timeout=max(self._next_beacon - time.monotonic(), 0.0))
            while True:
                if item is not None:
                    batch.setdefault(item[0], []).append(item[1])
                item = self._reports.get_nowait()
        except queue.Empty:
            return


class JobWorker:
    """A worker process. Call `run` in the main thread."""

    def __init__(self, broker: str, queues: Sequence[str], capacity: Capacity, say: Callable[[str], None]) -> None:
        """Raises LaunchError if the broker cannot be used."""
        self.app = make_app(broker)
        with translate_errors(self.app), self.app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.1)
        self.name = f"jobmeter-{uuid.uuid4().hex[:8]}@{os.uname().nodename}"
        self._queues = tuple(queues)
        self._say = say
        self._closing = False
        self._signals = 0
        self._runtimes = _container_runtimes()
        self.outbox = Outbox(self.app, self.name, self.beacon, self._tick)
        self.tasks = WorkerTasks(capacity, self.outbox.send)

    def beacon(self) -> dict[str, Any]:
        tasks, free = self.tasks.overview()
        return {
            "name": self.name,
            "host": os.uname().nodename,
            "version": __version__,
            "protocol": PROTOCOL,
            "queues": self._queues,
            "capacity": self.tasks.capacity_here,
            "free": free,
            "runtimes": self._runtimes,
            "tasks": tasks,
            "closing": self._closing,
        }

    def run(self) -> None:
        """Take jobs until a signal. The first signal lets running jobs come to their end, the second ends them."""
        self.outbox.start()
        threading.Thread(target=self._watch_contact, name="jobmeter-contact", daemon=True).start()
        with translate_errors(self.app), warnings.catch_warnings():
            # Celery warns the user root that pickled tasks may run any code. Ours are JSON.
            warnings.simplefilter("ignore")
            worker = self._celery_worker()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._receive_signal)
            try:
                worker.start()
            finally:
                self._finish()

    def _celery_worker(self) -> Any:
        from celery.worker.control import control_command

        @self.app.task(name=RUN)  # type: ignore[untyped-decorator]
        def run(task_id: str, order: dict[str, Any]) -> None:
            self.tasks.run(task_id, Order(order))

        @control_command(name="jobmeter_beacon")  # type: ignore[untyped-decorator]
        def beacon(state: Any) -> None:
            self.outbox.beacon_now()

        @control_command(name="jobmeter_cancel")  # type: ignore[untyped-decorator]
        def cancel(state: Any, ids: list[str], at_once: bool) -> None:
            self.tasks.cancel_tasks(ids, at_once=at_once)

        @control_command(name="jobmeter_send_again")  # type: ignore[untyped-decorator]
        def send_again(state: Any, task: str, first: int, reply_to: str) -> None:
            if task in self.tasks.tasks:
                self.tasks.tasks[task].send_again(first, reply_to)

        @control_command(name="jobmeter_forget")  # type: ignore[untyped-decorator]
        def forget(state: Any, ids: list[str]) -> None:
            self.tasks.forget(ids)

        from celery.worker import WorkController

        class Controller(WorkController):  # type: ignore[misc]
            def on_consumer_ready(controller, consumer: Any) -> None:  # noqa: N805 - `self` is the JobWorker
                self.outbox.beacon_now()
                self._say(f"worker {self.name} takes jobs of queue {', '.join(self._queues)}")

        return Controller(
            app=self.app,
            hostname=self.name,
            queues=[task_queue(self.name)],
            pool_cls="threads",
            concurrency=MOST_TASKS,
            without_gossip=True,
            without_mingle=True,
            loglevel="WARNING",
        )

    def _receive_signal(self, number: int, frame: object) -> None:
        """The first signal closes the worker to new jobs, the second ends running jobs, the third kills them."""
        from celery.worker import state

        self._signals += 1
        if self._signals > 1:
            self._abandon_all(at_once=self._signals > 2)
            return
        self._closing = True
        self.tasks.return_waiting()
        self.outbox.beacon_now()
        state.should_stop = 0  # Celery's loop reads it, and ends when all tasks have ended
        if running := len(self.tasks.running()):
            jobs = "1 job still runs" if running == 1 else f"{running} jobs still run"
            self._say(f"{jobs}; another signal ends {'it' if running == 1 else 'them'}")

    def _abandon_all(self, *, at_once: bool) -> None:
        for task in self.tasks.running():
            self.tasks.abandon(task, f"worker {self.name} was stopped", at_once=at_once)

    def _finish(self) -> None:
        self._abandon_all(at_once=True)
        for task in self.tasks.running():
            task.ended.wait()
        self.outbox.close()
        self.tasks.close()

    def _tick(self) -> None:
        self.tasks.send_levels()

    def _watch_contact(self) -> None:
        """Without contact to the broker, end jobs before their runner counts this worker as dead and restarts them."""
        last_look = time.monotonic()
        while True:
            time.sleep(0.5)
            now = time.monotonic()
            silent = now - min(self.outbox.last_contact, last_look)
            last_look = now
            for task in self.tasks.running():
                if silent > 0.8 * task.order.timeout and not task.cancelled:
                    why = f"worker {self.name} had no contact with the broker for {silent:.0f} s"
                    self._say(f"job {task.order.task.name} is ended: {why}")
                    self.tasks.abandon(task, why, at_once=True)


def _container_runtimes() -> list[str]:
    from jobmeter.launch.container.runtime import open_runtime

    names = []
    for name in ("docker", "podman"):
        try:
            open_runtime(name).close()
            names.append(name)
        except JobmeterError:
            continue
    return names
