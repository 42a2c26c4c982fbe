"""The jobs of one worker: each waits until there is room, runs, and reports. Does not depend on Celery.

The reports of a task are numbered, and kept until its runner confirms that it has all of them. So reports that a broker
lost can be sent again, and a new runner can take over a task whose runner was killed.
"""

from __future__ import annotations

import base64
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jobmeter.engines.celery.placement import AMOUNTS, Need, need_of
from jobmeter.engines.contract import Capacity, Ended, Task, Token
from jobmeter.engines.local import LocalEngine
from jobmeter.engines.reporting_task import ReportingTask
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.journal.writer import RunJournal
from jobmeter.model import Outcome, Status, Value

MOST_ENDED = 2000
"""Ended tasks whose reports are kept for a runner that does not take them; beyond that, the oldest are dropped."""
_MOST_REFUSED = 20_000
"""How many ids of tasks that must not run here are remembered; beyond that, the oldest are dropped."""

Send = Callable[[str, str, "int | None", list[Any]], None]
"""Called with the queue, the id of the task, the number of the report (None: it may get lost) and the report itself."""


class Order:
    """What a runner sends: a task, and the queue for the reports about it."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.task = Task.from_json(fields["task"])
        self.reply_to: str = fields["reply_to"]
        self.timeout: float = fields["timeout"]
        self.marker: tuple[str, str] = tuple(fields["marker"])


class WorkerTask(ReportingTask):
    """One task on this worker. Its reports are numbered, and kept."""

    def __init__(self, task_id: str, order: Order, send: Send) -> None:
        super().__init__(order.task, order.marker)
        self.id = task_id
        self.order = order
        self.need: Need = need_of(order.task.requirement, order.task.container)
        self.ended = threading.Event()
        self.cancelled = self.at_once = False
        self.returned = False  # it waited here, and the worker closed before it began
        self._send = send
        self._lock = threading.Lock()
        self._reports: list[list[Any]] = []

    def report(self, report: list[Any]) -> None:
        """Send a report that must arrive."""
        if report[0] == "output":
            report = [*report[:3], base64.b64encode(report[3]).decode("ascii")]  # JSON has no bytes
        with self._lock:
            self._reports.append(report)
            self._send(self.order.reply_to, self.id, len(self._reports) - 1, report)

    def mention(self, report: list[Any]) -> None:
        """Send a report that may get lost: levels, warnings."""
        self._send(self.order.reply_to, self.id, None, report)

    def send_again(self, first: int, reply_to: str) -> None:
        """Send all reports from number `first` on, and all later ones, to a queue: it may be that of a new runner."""
        with self._lock:
            self.order.reply_to = reply_to
            for number in range(first, len(self._reports)):
                self._send(reply_to, self.id, number, self._reports[number])

    def sent(self) -> int:
        return len(self._reports)

    def give_back(self) -> None:
        """Return the task to its runner: it never began here."""
        self.report(["returned"])
        self.ended.set()

    def end(self, ended: Ended) -> None:
        super().end(ended)
        self.ended.set()


class WorkerTasks(LocalEngine):
    """Runs tasks as the local engine does. It is that engine's receiver, and shares out what the worker has."""

    def __init__(self, capacity: Capacity, send: Send) -> None:
        super().__init__()
        self.capacity_here = {name: getattr(capacity, name) or 0 for name in AMOUNTS}
        self._free = dict(self.capacity_here)
        self.tasks: dict[str, WorkerTask] = {}
        self._numbers: dict[int, WorkerTask] = {}
        self._refused: dict[str, None] = {}  # ids that must not run here: cancelled before they came, or forgotten
        self._waiting: deque[WorkerTask] = deque()
        self._takes_more = True
        self._room = threading.Condition()
        self._last_number = 0
        self._send = send
        self.open(self)

    def run(self, task_id: str, order: Order) -> None:
        """Run a task to its end. A task that is already known here is not run again: a broker may deliver it twice."""
        with self._room:
            if task_id in self.tasks:
                return
            task = self.tasks[task_id] = WorkerTask(task_id, order, self._send)
            task.cancelled = task_id in self._refused
            task.returned = not self._takes_more
            self._last_number += 1
            number = self._last_number
            self._numbers[number] = task
            self._waiting.append(task)
            # In the order in which they came, so that smaller tasks do not overtake a large one for ever.
            self._room.wait_for(
                lambda: task.cancelled or task.returned or (self._waiting[0] is task and self._fits(task.need))
            )
            self._waiting.remove(task)
            self._take(task.need)
            self._room.notify_all()
        try:
            if task.returned and not task.cancelled:
                task.give_back()
                return
            numbered = task.task._replace(number=number)
            if task.cancelled:
                task.end(self._run_task(numbered))  # in this thread: all others may be busy
                return
            self.start(numbered)
            if task.cancelled:
                self.cancel(number, at_once=task.at_once)
            task.ended.wait()
        finally:
            with self._room:
                self._take(task.need, -1)
                del self._numbers[number]
                self._drop_oldest()
                self._room.notify_all()

    def return_waiting(self) -> None:
        """Return tasks that wait for room here, and those that still come, to their runners: they can run elsewhere."""
        with self._room:
            self._takes_more = False
            for task in self._waiting:
                task.returned = True
            self._room.notify_all()

    def cancel_tasks(self, ids: Iterable[str], *, at_once: bool) -> None:
        """End tasks, also those that have not come yet. None of them starts in the room that another one leaves."""
        numbers = []
        with self._room:
            for task_id in ids:
                task = self.tasks.get(task_id)
                if task is None:
                    self._refuse(task_id)
                    continue
                task.cancelled, task.at_once = True, task.at_once or at_once
                numbers += [number for number, each in self._numbers.items() if each is task]
            self._room.notify_all()
        for number in numbers:
            self.cancel(number, at_once=at_once)

    def abandon(self, task: WorkerTask, why: str, *, at_once: bool) -> None:
        """End a task that its runner did not cancel. It is reported as lost, for the reason `why`."""
        task.abandoned = why
        self.cancel_tasks([task.id], at_once=at_once)

    def forget(self, ids: list[str]) -> None:
        """Drop the reports of these tasks, if they have ended: their runner has all of them."""
        with self._room:
            for task_id in ids:
                if task_id in self.tasks and self.tasks[task_id].ended.is_set():
                    del self.tasks[task_id]
                    # A late message of the broker must not run the task again.
                    self._refuse(task_id)

    def running(self) -> list[WorkerTask]:
        """The tasks that have not ended, and were not returned. Those that wait are included."""
        with self._room:
            return [task for task in self.tasks.values() if not (task.ended.is_set() or task.returned)]

    def overview(self) -> tuple[dict[str, list[Any]], dict[str, float]]:
        """For each task how many reports it has sent and whether it has ended; and what unfinished tasks leave free."""
        with self._room:
            tasks = list(self.tasks.values())
        ended = {task.id: task.ended.is_set() for task in tasks}
        free = dict(self.capacity_here)
        for task in tasks:
            if not ended[task.id]:
                for name, amount in task.need.amounts.items():
                    free[name] = free.get(name, 0) - amount
        return {task.id: [task.sent(), ended[task.id]] for task in tasks}, free

    def _run_task(self, task: Task) -> Ended:
        """Run one task. If it cannot even be recorded, it is lost, and may run elsewhere; the other tasks go on."""
        mine = self._numbers[task.number]
        try:
            if mine.cancelled:
                return Ended(task.number, unmeasured_record(task, Outcome(Status.CANCELLED), mine))
            return super()._run_task(mine.local_task(task.number))
        except Exception as error:  # noqa: BLE001 - its runner waits for its end, whatever happens
            return Ended(task.number, None, f"its worker failed: {type(error).__name__}: {error}")

    def _refuse(self, task_id: str) -> None:
        self._refused[task_id] = None
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]

    def _fits(self, need: Need) -> bool:
        return all(amount <= self._free.get(name, 0) + 1e-9 for name, amount in need.amounts.items())

    def _take(self, need: Need, sign: int = 1) -> None:
        for name, amount in need.amounts.items():
            self._free[name] = self._free.get(name, 0) - sign * amount

    def _drop_oldest(self) -> None:
        ended = [task_id for task_id, task in self.tasks.items() if task.ended.is_set()]
        for task_id in ended[: max(len(ended) - MOST_ENDED, 0)]:
            del self.tasks[task_id]

    # The local engine reports to these methods, which pass each report on to its task.

    @property
    def journal(self) -> RunJournal:
        raise AssertionError("each task has its own: `journal_of`")

    def journal_of(self, task: Task) -> RunJournal:
        return self._numbers[task.number]

    def keep_token(self, task: Task, token: Token) -> None:
        """No token is stored: the guard knows what runs here, and a worker is never resumed."""

    def ended(self, ended: Ended) -> None:
        self._numbers[ended.number].end(ended)

    def broke(self, error: Exception) -> None:
        raise AssertionError("a task that fails is lost alone: `_run_task`")

    def warn(self, message: str) -> None:
        for task in self.running():
            task.mention(["warn", message])

    def send_levels(self) -> None:
        """Send what each running task uses now, and what it wrote."""
        levels: Mapping[int, Mapping[str, Value]] = self.levels()
        for number, task in list(self._numbers.items()):
            task.send_output()
            if number in levels:
                task.mention(["levels", dict(levels[number])])
