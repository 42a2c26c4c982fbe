"""The jobs of one worker: each waits until there is room, runs, and reports. Knows nothing of Celery.

What a task reports is numbered and kept until its runner says that it has all of it. So what a broker lost can be sent
once more, and a new runner can take over a task whose own was killed.
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
"""Ids of tasks that must not run here, which are remembered; the oldest are dropped."""

Send = Callable[[str, str, "int | None", list[Any]], None]
"""Queue, id of the task, number of the report (None: it may get lost) and the report itself."""


class Order:
    """What a runner wants done: a task, and where reports of it go."""

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
        self.returned = False  # it waited here, and its worker begins no more
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
        """Send all reports from a number on, also to another runner than before."""
        with self._lock:
            self.order.reply_to = reply_to
            for number in range(first, len(self._reports)):
                self._send(reply_to, self.id, number, self._reports[number])

    def sent(self) -> int:
        return len(self._reports)

    def give_back(self) -> None:
        """It never began here."""
        self.report(["returned"])
        self.ended.set()

    def end(self, ended: Ended) -> None:
        super().end(ended)
        self.ended.set()


class WorkerTasks(LocalEngine):
    """Runs tasks as the local engine does. It is the receiver of their ends, and gives out what the worker has."""

    def __init__(self, capacity: Capacity, send: Send) -> None:
        super().__init__()
        self.capacity_here = {name: getattr(capacity, name) or 0 for name in AMOUNTS}
        self._free = dict(self.capacity_here)
        self.tasks: dict[str, WorkerTask] = {}
        self._numbers: dict[int, WorkerTask] = {}
        self._refused: dict[str, None] = {}  # never run here: cancelled before they came, or over
        self._waiting: deque[WorkerTask] = deque()
        self._takes_more = True
        self._room = threading.Condition()
        self._last_number = 0
        self._send = send
        self.open(self)

    def run(self, task_id: str, order: Order) -> None:
        """Run a task to its end. One that was here before is not run again, whoever delivers it twice."""
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
            # In the order in which they came, so that a large one is not overtaken for ever.
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
            if task.cancelled:
                local = task.local_task(number)
                task.end(Ended(number, unmeasured_record(local, Outcome(Status.CANCELLED), task)))
                return
            self.start(task.local_task(number))
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
        """Give back what waits for room here, and what still comes: it can run elsewhere."""
        with self._room:
            self._takes_more = False
            for task in self._waiting:
                task.returned = True
            self._room.notify_all()

    def cancel_tasks(self, ids: Iterable[str], *, at_once: bool) -> None:
        """End tasks, also those that have not come yet. None of them begins because another one made room."""
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
        """End a task that its runner did not cancel."""
        task.abandoned = why
        self.cancel_tasks([task.id], at_once=at_once)

    def forget(self, ids: list[str]) -> None:
        """The runner has all reports of these."""
        with self._room:
            for task_id in ids:
                if task_id in self.tasks and self.tasks[task_id].ended.is_set():
                    del self.tasks[task_id]
                    # A message of the broker that comes late must not run it again.
                    self._refuse(task_id)

    def running(self) -> list[WorkerTask]:
        """The tasks that have not ended."""
        with self._room:
            return [task for task in self.tasks.values() if not (task.ended.is_set() or task.returned)]

    def overview(self) -> tuple[dict[str, list[Any]], dict[str, float]]:
        """Of each task how many reports it has sent and whether it has ended; and what those that have not leave."""
        with self._room:
            tasks = list(self.tasks.values())
        ended = {task.id: task.ended.is_set() for task in tasks}
        free = dict(self.capacity_here)
        for task in tasks:
            if not ended[task.id]:
                for name, amount in task.need.amounts.items():
                    free[name] = free.get(name, 0) - amount
        return {task.id: [task.sent(), ended[task.id]] for task in tasks}, free

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

    # What the local engine reports goes to the task that it is about.

    @property
    def journal(self) -> RunJournal:
        raise AssertionError("each task has its own: `journal_of`")

    def journal_of(self, task: Task) -> RunJournal:
        return self._numbers[task.number]

    def keep_token(self, task: Task, token: Token) -> None:
        """The guard knows what runs here; nobody resumes a worker."""

    def ended(self, ended: Ended) -> None:
        self._numbers[ended.number].end(ended)

    def broke(self, error: Exception) -> None:
        for task in self.running():
            task.end(Ended(0, None, f"its worker failed: {type(error).__name__}: {error}"))

    def warn(self, message: str) -> None:
        for task in self.running():
            task.mention(["warn", message])

    def send_levels(self) -> None:
        """What each running task uses now, and what it wrote."""
        levels: Mapping[int, Mapping[str, Value]] = self.levels()
        for number, task in list(self._numbers.items()):
            task.send_output()
            if number in levels:
                task.mention(["levels", dict(levels[number])])
