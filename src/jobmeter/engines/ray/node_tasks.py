"""The node's side: a worker of Ray that runs one job after another, as the local engine does."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from typing import Any

from jobmeter.engines.contract import Ended, Task, Token
from jobmeter.engines.devices import Devices
from jobmeter.engines.local import LocalEngine
from jobmeter.engines.ray.left_jobs import NotedJob, forget_ended
from jobmeter.engines.ray.mailbox import Batch
from jobmeter.engines.ray.protocol import NAMESPACE, PROTOCOL, SLOW_TICK, TICK, Order, mailbox_name
from jobmeter.engines.reporting_task import ReportingTask
from jobmeter.journal.writer import RunJournal
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.launch.leftover_jobs import identity_of
from jobmeter.session.command import own_environment

_MOST_BYTES = 1 << 20
"""Bytes of output that a task collects before it sends them."""
_LOOK = 0.5
"""Seconds between two checks whether the node is still alive."""


def run_order(order: Order) -> tuple[int, list[list[Any]]]:
    """Run a task to its end. Returns the reports that were not sent before, preceded by the number of the first."""
    if order.protocol != PROTOCOL:
        from jobmeter import __version__

        raise RuntimeError(f"it has jobmeter {__version__}, which does not understand that of the runner")
    return _tasks_of(order.key).run(order)


@functools.cache
def _tasks_of(key: str) -> NodeTasks:
    return NodeTasks(key)


class NodeTask(ReportingTask):
    """The task that runs here. Its reports are collected until `send`, or until its end."""

    def __init__(self, order: Order, mailbox: Any, node: str) -> None:
        super().__init__(_placed(order), order.marker)
        self.id = order.id
        self.ended = threading.Event()
        self._mailbox = mailbox
        self._lock = threading.RLock()
        self._sent = 0
        self._bytes = 0
        self._waiting: list[list[Any]] = [["node", node]]
        self._on_its_way: tuple[Batch, int, Any] | None = None
        self.is_cut_off = False  # the mailbox is gone: no more reports can be sent

    def report(self, report: list[Any]) -> None:
        with self._lock:
            self._waiting.append(report)
            if report[0] == "output":
                self._bytes += len(report[3])
                if self._bytes >= _MOST_BYTES:
                    self.send()

    def send(self) -> None:
        """Send the collected reports, once those that were sent before have arrived."""
        from ray.exceptions import RayError

        with self._lock:
            try:
                self._await_arrival()
                if self._waiting and not self.is_cut_off:
                    self._put((self.id, self._sent, self._waiting), self._bytes)
            except RayError:
                self.is_cut_off = True
            self._sent += len(self._waiting)
            self._waiting, self._bytes = [], 0

    def _await_arrival(self) -> None:
        from ray.exceptions import ActorUnavailableError

        while self._on_its_way is not None:
            batch, size, arrival = self._on_its_way
            try:
                # Not `ray.get`: that would give the CPUs of this task to other tasks while it waits.
                arrival.result()
                self._on_its_way = None
            except ActorUnavailableError:
                time.sleep(TICK)
                self._put(batch, size)  # reports that come twice are taken once

    def _put(self, batch: Batch, size: int) -> None:
        self._on_its_way = (batch, size, self._mailbox.put.remote(batch, size).future())

    def end(self, ended: Ended) -> None:
        super().end(ended)
        self.ended.set()

    def rest(self) -> tuple[int, list[list[Any]]]:
        """The reports that were not sent, and the number of the first, once those that were sent have arrived."""
        with self._lock, contextlib.suppress(Exception):  # a driver that takes no reports does not take these either
            self._await_arrival()
        with self._lock:
            return self._sent, self._waiting


class NodeTasks(LocalEngine):
    """Runs tasks of one driver, one at a time, as the local engine does. It is that engine's receiver."""

    is_in_a_worker = True

    def __init__(self, key: str) -> None:
        import ray

        super().__init__()
        self._mailbox = ray.get_actor(mailbox_name(key), namespace=NAMESPACE)
        context = ray.get_runtime_context()
        self._node = f"{os.uname().nodename} ({context.get_node_id()[:8]})"
        forget_ended()
        self._noted = NotedJob(key)
        self._task: NodeTask | None = None
        self._number = 0
        self._known_cancels: dict[str | None, bool] = {}
        self._cancel_lock = threading.Lock()
        self.open(self)
        for target in (self._heed_cancels, _end_with_the_node):
            threading.Thread(target=target, name="jobmeter-ray", daemon=True).start()

    def run(self, order: Order) -> tuple[int, list[list[Any]]]:
        self._number += 1
        # Ray sets in the environment which GPUs each task may use.
        self._environment = own_environment()
        self._devices = Devices(self._environment.get("CUDA_VISIBLE_DEVICES", ""))
        task = NodeTask(order, self._mailbox, self._node)
        with self._cancel_lock:
            self._task = task
            self.start(task.local_task(self._number))
            self._heed(task)
        self._wait(task)
        return task.rest()

    def _wait(self, task: NodeTask) -> None:
        """Wait for the end of a task, and report while it runs."""
        began = time.monotonic()
        while not task.ended.is_set():
            try:
                passed = time.monotonic() - began
                if task.ended.wait(TICK if passed < 2 * SLOW_TICK else SLOW_TICK):
                    return
                self._report_progress(task)
                if task.is_cut_off:
                    self.cancel(self._number, at_once=True)
            except KeyboardInterrupt:
                # Ray was told to remove the task from its queue, but the task had begun by then.
                self.cancel(self._number)

    def _report_progress(self, task: NodeTask) -> None:
        task.send_output()
        levels = self.levels().get(self._number)
        if levels is not None:
            task.report(["levels", dict(levels)])
        task.send()

    def _heed_cancels(self) -> None:
        """Cancel what the mailbox says. End the job if mailbox or driver are gone, as no report of it could arrive."""
        import ray
        from ray.exceptions import RayError

        received = 0
        while True:
            try:
                lives, cancels = ray.get(self._mailbox.cancels.remote(received))
            except RayError:
                lives, cancels = False, []
            received += len(cancels)
            with self._cancel_lock:
                for task, at_once in cancels if lives else [(None, True)]:
                    self._known_cancels[task] = at_once or self._known_cancels.get(task, False)
                if self._task is not None and not self._task.ended.is_set():
                    self._heed(self._task)
            if not lives:
                return

    def _heed(self, task: NodeTask) -> None:
        """Cancel the task if a cancel of it, or of all tasks, has come."""
        cancels = [self._known_cancels[each] for each in (task.id, None) if each in self._known_cancels]
        if cancels:
            self.cancel(self._number, at_once=any(cancels))

    # The local engine reports to these methods, which pass each report on to the task.

    @property
    def journal(self) -> RunJournal:
        assert self._task is not None
        return self._task

    def journal_of(self, task: Task) -> RunJournal:
        return self.journal

    def keep_token(self, task: Task, token: Token) -> None:
        self._noted.note(token)

    def ended(self, ended: Ended) -> None:
        self._noted.forget()
        assert self._task is not None
        self._task.end(ended)

    def broke(self, error: Exception) -> None:
        assert self._task is not None
        self._task.abandoned = f"{self._node}: {type(error).__name__}: {error}"
        self._task.end(Ended(0, None))

    def warn(self, message: str) -> None:
        if self._task is not None:
            self._task.report(["warn", message])


def _end_with_the_node() -> None:
    """End this worker when its raylet has died; its guard then ends the job. Ray would end it only after its task."""
    pid = int(os.environ.get("RAY_RAYLET_PID", 0))
    node = identity_of(THIS_MACHINE, pid) if pid else None
    while node is not None:
        time.sleep(_LOOK)
        if identity_of(THIS_MACHINE, pid) != node:
            os._exit(1)


def _placed(order: Order) -> Task:
    """The task of an order. If Ray copied the working directory to this node, the task's paths are in the copy."""
    task = Task.from_json(order.task)
    root = order.working_directory
    if root is None:
        return task
    here = os.getcwd()

    def moved(path: str) -> str:
        return here + path[len(root) :] if f"{path}/".startswith(f"{root}/") else path

    return task._replace(
        directory=moved(task.directory or root),
        outputs=tuple(map(moved, task.outputs)),
        metrics=None if task.metrics is None else moved(task.metrics),
    )
