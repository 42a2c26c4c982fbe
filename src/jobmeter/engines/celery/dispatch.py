"""Assigns the tasks of a runner to workers, and follows each task from its start to its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobmeter.engines.celery.known_workers import KnownWorkers
from jobmeter.engines.celery.orders import Orders
from jobmeter.engines.celery.placement import Need, WorkerState, choose, worker_to_hold, worker_to_wait_at
from jobmeter.engines.celery.sent_task import SentTask
from jobmeter.engines.contract import Ended, Receiver, Task, Token
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.model import Outcome, Status, Value

_PATIENCE = 2.5
"""Seconds after which a task that is missing at its worker is sent again, or a missing report is requested again."""


class Dispatch:
    """Sends tasks to workers, takes their reports, and repeats messages that got lost. Any thread may call it."""

    def __init__(self, workers: KnownWorkers, orders: Orders, receiver: Receiver, queue: str, timeout: float) -> None:
        """Tasks go to workers of `queue`. A worker without a beacon for `timeout` seconds counts as dead."""
        self._workers = workers
        self._orders = orders
        self._receiver = receiver
        self._queue = queue
        self._timeout = timeout
        self._lock = threading.RLock()
        self._waiting: list[SentTask] = []  # tasks without a worker, in the order of their start
        self._sent: dict[str, SentTask] = {}
        self._levels: dict[int, Mapping[str, Value]] = {}
        self._cancelled = False

    def start(self, task: Task) -> None:
        """Give a task to a worker, now or when one has room."""
        with self._lock:
            if self._cancelled:
                self._never_started(task)
                return
            self._waiting.append(SentTask.new(task))
            self._assign_waiting()

    def cancel(self, number: int | None, *, at_once: bool) -> None:
        """End the task of this job. With None, end all tasks and start no more. `at_once` skips SIGTERM."""
        with self._lock:
            if number is None:
                self._cancelled = True
            for sent in [sent for sent in self._waiting if number in (None, sent.number)]:
                self._waiting.remove(sent)
                assert sent.order is not None
                self._never_started(sent.order)
            for sent in self._sent.values():
                if number in (None, sent.number):
                    sent.cancelled, sent.at_once = True, sent.at_once or at_once
            self._orders.cancel(self._sent.values())

    def adopt(self, number: int, token: Token) -> None:
        """Take over a task of a killed runner, with all its reports."""
        with self._lock:
            sent = SentTask.adopted(number, token)
            self._sent[sent.id] = sent
            self._orders.request_reports(sent)

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        """What each job uses just now, by its number."""
        return dict(self._levels)

    # Messages from workers.

    def take_beacon(self, state: WorkerState) -> None:
        """Take what a worker reports about itself."""
        with self._lock:
            self._workers.take(state)
            for sent in self._sent.values():
                if sent.worker == state.name and sent.id in state.tasks:
                    sent.reported = True
            self._assign_waiting()

    def take_reports(self, reports: Iterable[tuple[str, int | None, list[Any]]]) -> None:
        """Take the reports of a worker about tasks: the id of the task, the number of the report, and the report."""
        with self._lock:
            for task_id, number, report in reports:
                if (sent := self._sent.get(task_id)) is not None:
                    self._take_report(sent, number, report)
            self._assign_waiting()

    def restart_timeouts(self) -> None:
        """Restart the timeout of all workers: nothing was heard from them because the broker was away."""
        with self._lock:
            self._workers.restart_timeouts()

    def check_workers(self) -> None:
        """Called at regular intervals: gives up workers that died, repeats tasks, reports and cancels that got lost."""
        now = time.monotonic()
        with self._lock:
            for name in self._workers.silent_for(self._timeout):
                self._lose(name)
            for sent in list(self._sent.values()):
                self._resend_lost(sent, now)
            self._orders.cancel(self._sent.values())  # again, as an earlier command may have got lost
            self._assign_waiting()
            self.forget_ended()

    def forget_ended(self) -> None:
        """Have workers forget the tasks whose ends are known here."""
        self._orders.forget(self._workers.to_forget())

    # The course of each task.

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
        self._workers.note_ended(sent.worker or "", sent.id, sent.need if sent.reported else None)
        self._receiver.ended(ended)

    def _lose(self, worker: str) -> None:
        self._workers.remove(worker)
        there = [sent for sent in self._sent.values() if sent.worker == worker]
        waited = [sent for sent in there if sent.has_not_begun]
        for sent in there:
            if sent not in waited:
                self._end(sent, Ended(sent.number, None, f"worker {worker} has sent nothing for {self._timeout:g} s"))
        self._wait_again(waited)

    def _wait_again(self, tasks: Sequence[SentTask]) -> None:
        """Put tasks that never began at the front of those that wait for a worker, unless they were cancelled."""
        again = []
        for sent in tasks:
            if sent.order is None:  # adopted: only its worker knew what to run
                self._end(sent, Ended(sent.number, None, f"worker {sent.worker} closed before it began"))
                continue
            del self._sent[sent.id]
            self._workers.note_ended(sent.worker or "", sent.id)
            if sent.cancelled:  # its worker returned it before the cancel arrived
                self._never_started(sent.order)
            else:
                again.append(SentTask.new(sent.order))
        self._waiting[:0] = again

    def _resend_lost(self, sent: SentTask, now: float) -> None:
        """Send the task, or request its reports, again if the broker lost them. Ends a task that is lost for good."""
        state = self._workers.states.get(sent.worker or "")
        if state is None:
            if now - sent.last_sent > self._timeout:
                self._end(sent, Ended(sent.number, None, f"worker {sent.worker} is gone"))
            return
        if now - sent.last_sent < _PATIENCE or self._workers.heard_at(state.name) < sent.last_sent + _PATIENCE / 2:
            return
        reported = state.tasks.get(sent.id)
        if reported is None:
            if sent.order is None:
                self._end(sent, Ended(sent.number, None, f"worker {sent.worker} does not know it any more"))
            elif state.closing:
                self._wait_again([sent])  # it was sent to a worker that was about to close, which will never begin it
            else:
                self._orders.send(sent, sent.order)
        elif reported[0] > sent.received and now - sent.last_received > _PATIENCE:
            sent.last_sent = now
            self._orders.request_reports(sent)

    # Which worker gets which task.

    def _assign_waiting(self) -> None:
        """Send waiting tasks to workers. For a task that fits on no worker now, one is kept free."""
        held: set[str] = set()
        workers = self._workers.states.values()
        free = self._free()
        for sent in list(self._waiting):
            if held.issuperset(self._workers.states):
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
            self._orders.send(sent, sent.order)

    def _free(self) -> dict[str, dict[str, float]]:
        """The amounts that are free on each worker, by its name."""
        given: dict[str, list[Need]] = {}
        for sent in self._sent.values():
            if sent.worker is not None and not sent.reported:
                given.setdefault(sent.worker, []).append(sent.need)
        return self._workers.free(given)

    def _never_started(self, task: Task) -> None:
        record = unmeasured_record(task, Outcome(Status.CANCELLED), self._receiver.journal)
        self._receiver.ended(Ended(task.number, record))
