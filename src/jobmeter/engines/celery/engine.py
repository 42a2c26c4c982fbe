"""The engine `celery`: the side of the runner. It chooses a worker for each job and takes what workers report."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter.engines.celery.broker import (
    DEFAULT_BROKER,
    DEFAULT_QUEUE,
    PROTOCOL,
    RUN,
    broker_address,
    broker_errors,
    call_worker,
    in_plain_words,
    make_app,
    make_queue,
    reply_queue,
    shown,
    task_queue,
)
from jobmeter.engines.celery.discovery import beacon_queue, discover
from jobmeter.engines.celery.placement import (
    AMOUNTS,
    Need,
    WorkerState,
    can_run,
    choose,
    free_amounts,
    worker_to_hold,
    worker_to_wait_at,
)
from jobmeter.engines.celery.sent_task import SentTask
from jobmeter.engines.contract import (
    Capabilities,
    Capacity,
    Ended,
    EngineOption,
    LeftTask,
    Receiver,
    Recovered,
    Task,
)
from jobmeter.engines.shared_files import MarkerFile
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.errors import LaunchError, UsageError
from jobmeter.model import Outcome, Requirement, Status, Value
from jobmeter.settings import positive_seconds

if TYPE_CHECKING:
    from celery import Celery

WORKER_TIMEOUT = 30.0
"""Seconds without a beacon after which a worker counts as dead."""
_PATIENCE = 2.5
"""Seconds after which a task or a report that a worker should have is sent once more."""


class CeleryEngine:
    """Jobs run on workers that other machines started, through a broker."""

    options: Sequence[EngineOption] = (
        EngineOption("broker", "URL", f"where the Celery broker is (default: JOBMETER_BROKER, else {DEFAULT_BROKER})"),
        EngineOption("queue", "NAME", f"use the workers of this queue (default: {DEFAULT_QUEUE})"),
        EngineOption("worker-timeout", "TIME", "when a worker that is not heard of counts as dead (default: 30s)"),
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
        self._receiver: Receiver
        self._replies = ""
        self._lock = threading.RLock()
        self._workers: dict[str, WorkerState] = {}
        self._last_beacon: dict[str, float] = {}
        self._waiting: list[SentTask] = []  # have no worker yet, in the order of their start
        self._sent: dict[str, SentTask] = {}
        self._freed: dict[str, dict[str, Need]] = {}  # worker → tasks that ended since its last beacon
        self._to_forget: dict[str, set[str]] = {}  # worker → ended tasks whose reports are all here
        self._levels: dict[int, Mapping[str, Value]] = {}
        self._marker = MarkerFile()
        self._cancelled = self._at_once = False
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

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
        """What does not fit yet waits here. One job may request what the largest worker has."""
        workers = list(self._workers.values()) or self._discover()
        most = {name: max((worker.capacity.get(name, 0) for worker in workers), default=0) for name in AMOUNTS}
        return Capacity(largest=Requirement(most["cpus"], int(most["memory_bytes"]), None, int(most["gpus"])))

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._replies = reply_queue()
        ready = threading.Event()
        failed: list[LaunchError] = []
        self._thread = threading.Thread(target=self._run, args=(ready, failed), name="jobmeter-celery", daemon=True)
        self._thread.start()
        ready.wait()
        if failed:
            raise failed[0]

    def start(self, task: Task) -> None:
        with self._lock:
            if self._cancelled:
                self._never_started(task)
                return
            self._waiting.append(SentTask.new(task))
            self._place()

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        with self._lock:
            if number is None:
                self._cancelled, self._at_once = True, self._at_once or at_once
            for sent in [sent for sent in self._waiting if number in (None, sent.number)]:
                self._waiting.remove(sent)
                assert sent.order is not None
                self._never_started(sent.order)
            for sent in self._sent.values():
                if number in (None, sent.number):
                    sent.cancelled, sent.at_once = True, sent.at_once or at_once
            self._repeat_cancels()

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        """Tasks whose runner was killed go on: those still wanted are adopted, with all they reported."""
        ended, adopted = 0, set()
        for left in tasks:
            task, worker = str(left.token.get("task")), str(left.token.get("worker"))
            state = self._await_beacon(worker)
            if state is None:
                continue  # it is dead, and its jobs ended with it
            if left.wanted and task in state.tasks:
                adopted.add(left.number)
                with self._lock:
                    self._sent[task] = SentTask.adopted(left.number, left.token)
                    call_worker(self._app, worker, "jobmeter_send_again", task=task, first=0, reply_to=self._replies)
            else:
                ended += self._end_left(worker, task)
        return Recovered(ended, frozenset(adopted))

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        return dict(self._levels)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self._marker.remove()

    # The thread that takes what workers report.

    def _run(self, ready: threading.Event, failed: list[LaunchError]) -> None:
        while not self._closed.is_set():
            try:
                with in_plain_words(self._app):
                    self._receive(ready)
            except LaunchError as error:
                if not ready.is_set():
                    failed.append(error)
                    ready.set()
                    return
                # The broker is away: nothing is known of the workers, so none counts as dead.
                self._closed.wait(0.3)
                with self._lock:
                    self._last_beacon = dict.fromkeys(self._last_beacon, time.monotonic())
            except Exception as error:  # noqa: BLE001 - nobody would ever look at what this thread raises
                self._receiver.broke(error)
                ready.set()
                return

    def _receive(self, ready: threading.Event) -> None:
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
                ready.set()
                next_look = time.monotonic()
                while not self._closed.is_set():
                    with contextlib.suppress(TimeoutError):
                        connection.drain_events(timeout=0.1)
                    if time.monotonic() >= next_look:
                        next_look = time.monotonic() + 0.5
                        self._look()
                make_queue(self._replies)(connection.default_channel).delete()
                self._send_forgets()

    def _take_beacon(self, fields: dict[str, Any], message: Any) -> None:
        state = WorkerState.from_json(fields)
        with self._lock:
            self._workers[state.name] = state
            self._last_beacon[state.name] = time.monotonic()
            for sent in self._sent.values():
                if sent.worker == state.name and sent.id in state.tasks:
                    sent.reported = True
            self._to_forget.get(state.name, set()).intersection_update(state.tasks)
            freed = self._freed.get(state.name, {})
            self._freed[state.name] = {task_id: need for task_id, need in freed.items() if not state.has_ended(task_id)}
            self._place()

    def _take_reply(self, fields: dict[str, Any], message: Any) -> None:
        with self._lock:
            for task_id, number, report in fields["reports"]:
                if (sent := self._sent.get(task_id)) is not None:
                    self._take_report(sent, number, report)
            self._place()
        message.ack()

    def _take_report(self, sent: SentTask, number: int | None, report: list[Any]) -> None:
        kind = report[0]
        if kind == "levels":
            self._levels[sent.number] = report[1]
        elif kind == "warn":
            self._receiver.warn(f"{sent.worker}: {report[1]}")
        elif sent.is_next(number):
            if kind == "ended":
                self._end(sent, Ended(sent.number, report[1], report[2]))
            elif kind == "returned":
                self._wait_again([sent])
            else:
                sent.take(report, self._receiver.journal)

    def _end(self, sent: SentTask, ended: Ended) -> None:
        del self._sent[sent.id]
        self._levels.pop(sent.number, None)
        if sent.reported:
            self._freed.setdefault(sent.worker or "", {})[sent.id] = sent.need
        self._to_forget.setdefault(sent.worker or "", set()).add(sent.id)
        self._receiver.ended(ended)

    def _look(self) -> None:
        """What is due: cancels that got lost, reports and tasks that got lost, workers that died."""
        now = time.monotonic()
        with self._lock:
            for name, seen in list(self._last_beacon.items()):
                if now - seen > self._timeout:
                    self._lose(name)
            for sent in list(self._sent.values()):
                self._mend(sent, now)
            self._repeat_cancels()
            self._place()
            self._send_forgets()

    def _lose(self, worker: str) -> None:
        del self._last_beacon[worker]
        del self._workers[worker]
        self._to_forget.pop(worker, None)
        there = [sent for sent in self._sent.values() if sent.worker == worker]
        waited = [sent for sent in there if sent.has_not_begun]
        for sent in there:
            if sent not in waited:
                self._end(sent, Ended(sent.number, None, f"worker {worker} was not heard of for {self._timeout:g} s"))
        self._wait_again(waited)

    def _wait_again(self, tasks: Sequence[SentTask]) -> None:
        """Tasks that never began go to another worker, before all that were started after them."""
        again = []
        for sent in tasks:
            if sent.order is None:  # adopted: only its worker knew what to run
                self._end(sent, Ended(sent.number, None, f"worker {sent.worker} closed before it began"))
                continue
            del self._sent[sent.id]
            self._to_forget.setdefault(sent.worker or "", set()).add(sent.id)
            again.append(SentTask.new(sent.order))
        self._waiting[:0] = again

    def _mend(self, sent: SentTask, now: float) -> None:
        """Send again what the broker lost."""
        state = self._workers.get(sent.worker or "")
        if state is None:
            if now - sent.last_sent > self._timeout:
                self._end(sent, Ended(sent.number, None, f"worker {sent.worker} is gone"))
            return
        if now - sent.last_sent < _PATIENCE or self._last_beacon[state.name] < sent.last_sent + _PATIENCE / 2:
            return
        known = state.tasks.get(sent.id)
        if known is None:
            if sent.order is None:
                self._end(sent, Ended(sent.number, None, f"worker {sent.worker} does not know it any more"))
            else:
                self._send(sent, sent.order)
        elif known[0] > sent.received and now - sent.last_received > _PATIENCE:
            sent.last_sent = now
            call_worker(
                self._app, sent.worker, "jobmeter_send_again", task=sent.id, first=sent.received, reply_to=self._replies
            )

    def _repeat_cancels(self) -> None:
        """Cancel what shall end; a control command may get lost, so this is repeated until the end is reported."""
        for at_once in (False, True):
            by_worker: dict[str, list[str]] = {}
            for sent in self._sent.values():
                if sent.cancelled and sent.at_once == at_once and sent.worker is not None:
                    by_worker.setdefault(sent.worker, []).append(sent.id)
            for worker, ids in by_worker.items():
                with self._while_broker_is_there():
                    call_worker(self._app, worker, "jobmeter_cancel", ids=ids, at_once=at_once)

    def _send_forgets(self) -> None:
        for worker, ids in self._to_forget.items():
            if ids:
                with self._while_broker_is_there():
                    call_worker(self._app, worker, "jobmeter_forget", ids=sorted(ids))

    # Which worker gets which task.

    def _place(self) -> None:
        """Give waiting tasks to workers. For one that fits nowhere now, a worker is kept free."""
        held: set[str] = set()
        workers = self._workers.values()
        free = self._free()
        for sent in list(self._waiting):
            if held.issuperset(self._workers):
                return
            name = choose(sent.need, workers, free, self._queue, held)
            if name is None and not held:
                name = worker_to_wait_at(sent.need, workers, free, self._queue)
            if name is None:
                if (keep := worker_to_hold(sent.need, workers, free, self._queue)) is not None:
                    held.add(keep)
                continue
            self._waiting.remove(sent)
            sent.worker = name
            for amount, value in sent.need.amounts.items():
                free[name][amount] = free[name].get(amount, 0) - value
            self._sent[sent.id] = sent
            assert sent.order is not None
            self._receiver.keep_token(sent.order, sent.token())
            self._send(sent, sent.order)

    def _free(self) -> dict[str, dict[str, float]]:
        """What each worker has left."""
        given: dict[str, list[Need]] = {}
        for sent in self._sent.values():
            if sent.worker is not None and not sent.reported:
                given.setdefault(sent.worker, []).append(sent.need)
        return {
            name: free_amounts(state, given.get(name, ()), self._freed.get(name, {}).values())
            for name, state in self._workers.items()
        }

    def _send(self, sent: SentTask, task: Task) -> None:
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

    def _never_started(self, task: Task) -> None:
        record = unmeasured_record(task, Outcome(Status.CANCELLED), self._receiver.journal)
        self._receiver.ended(Ended(task.number, record))

    @contextlib.contextmanager
    def _while_broker_is_there(self) -> Iterator[None]:
        """What could not be sent is sent again at the next look."""
        with contextlib.suppress(*broker_errors(self._app)):
            yield

    def _discover(self) -> list[WorkerState]:
        """The workers of the queue that answer."""
        workers = discover(self._app, self._queue)
        self._workers = {worker.name: worker for worker in workers}
        return workers

    # What a killed runner left.

    def _await_beacon(self, worker: str, after: float = 0.0) -> WorkerState | None:
        """What a worker reports after a moment; None when it is not heard of for so long that it counts as dead."""
        until = time.monotonic() + self._timeout
        while time.monotonic() < until:
            if self._last_beacon.get(worker, 0.0) > after:
                return self._workers[worker]
            time.sleep(0.02)
        return None

    def _end_left(self, worker: str, task: str) -> int:
        """End a task that nobody wants any more, also one that its worker has not got yet; how many still ran."""
        running = 0
        while True:
            sent = time.monotonic()
            call_worker(self._app, worker, "jobmeter_cancel", ids=[task], at_once=False)
            call_worker(self._app, worker, "jobmeter_beacon")
            state = self._await_beacon(worker, sent)
            if state is None or state.has_ended(task):
                self._to_forget.setdefault(worker, set()).add(task)
                return running
            running = 1
            time.sleep(0.1)
