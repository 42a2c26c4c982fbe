"""The engine `ray`: the runner's side. It holds the jobs that wait, and takes the reports about the others."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

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
from jobmeter.engines.ray.connection import wanted_address
from jobmeter.engines.ray.driver_process import DriverProcess
from jobmeter.engines.ray.options import RuntimeOptions, runtime_options
from jobmeter.engines.ray.protocol import NodeInfo, Order
from jobmeter.engines.ray.room import fits_somewhere, fits_together, largest, need_of
from jobmeter.engines.ray.sent_task import SentTask
from jobmeter.engines.shared_files import MarkerFile
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.errors import LaunchError
from jobmeter.model import Outcome, Status, Value

_UNQUEUE_AFTER = 1.0
"""A task that has reported nothing this many seconds after its cancel is assumed to wait in Ray's queue."""


class RayEngine:
    """Jobs run as tasks on the nodes of a Ray cluster."""

    options: Sequence[EngineOption] = (
        EngineOption(
            "address", "HOST:PORT", "the head of the Ray cluster (default: auto, the cluster of this machine)"
        ),
        EngineOption("working-dir", "DIR", "have Ray copy this directory to the nodes, and run jobs in the copy"),
        EngineOption("runtime-env", "JSON", "a runtime environment of Ray for the jobs: an object, or a file with one"),
    )
    capabilities = Capabilities(shares_files=False, retries_elsewhere=True, has_custom=True, has_queue=True)

    def __init__(self, options: Mapping[str, str] = {}) -> None:
        """Raises UsageError if an option is not valid."""
        self._address = wanted_address(options.get("address"))
        self._runtime: RuntimeOptions = runtime_options(options)
        self._key = uuid.uuid4().hex[:16]
        self._driver: DriverProcess | None = None
        self._receiver: Receiver
        self._warnings: Sequence[str] = ()  # of the last check, until there is a receiver
        self._lock = threading.RLock()
        self._nodes: Sequence[NodeInfo] = ()
        self._waiting: list[SentTask] = []  # not in the cluster yet, in the order of their start
        self._sent: dict[str, SentTask] = {}
        self._reserved: dict[str, float] = {}  # what the tasks in the cluster request together
        self._levels: dict[int, Mapping[str, Value]] = {}
        self._token: dict[str, str] = {}
        self._marker = MarkerFile()
        self._cancelled = self._is_gone = False
        self._closed = threading.Event()

    def check(self, container_runtimes: Collection[str] = ()) -> None:
        self._warnings = self._connected().request("check", list(container_runtimes))

    def capacity(self) -> Capacity:
        """The most that one job may request: what the largest node has. Jobs that do not fit yet wait here."""
        self._nodes = self._connected().request("nodes")
        return largest(self._nodes)

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        for warning in self._warnings:
            receiver.warn(warning)
        driver = self._connected()
        self._nodes = driver.request("nodes")
        driver.report_to(self._handle_event)
        self._token = {**driver.request("open", self._key), "key": self._key}
        threading.Thread(target=self._check_waiting, name="jobmeter-ray-check", daemon=True).start()

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        """End what still runs on any node. Ray itself ends the tasks of a driver that is gone."""
        engines = {task.token["key"]: task.token for task in tasks if "key" in task.token}
        if not engines:
            return Recovered()
        ended, warnings = self._connected().request("end_left", list(engines.values()))
        for warning in warnings:
            self._receiver.warn(warning)
        return Recovered(ended)

    def start(self, task: Task) -> None:
        with self._lock:
            sent = SentTask(task, need_of(task.requirement, task.custom))
            if self._cancelled:
                self._never_started(sent)
                return
            self._waiting.append(sent)
            self._submit_waiting()

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        with self._lock:
            self._cancelled = self._cancelled or number is None
            for sent in [sent for sent in self._waiting if number in (None, sent.number)]:
                self._waiting.remove(sent)
                self._never_started(sent)
            those = [sent for sent in self._sent.values() if number in (None, sent.number)]
            for sent in those:
                sent.cancelled_at = sent.cancelled_at or time.monotonic()
            if those and self._driver is not None:
                if number is None:
                    self._driver.send("cancel", None, at_once)
                else:
                    for sent in those:
                        self._driver.send("cancel", sent.id, at_once)

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        return dict(self._levels)

    def close(self) -> None:
        self._closed.set()
        if self._driver is not None:
            self._driver.close()
        self._marker.remove()

    def _connected(self) -> DriverProcess:
        """The driver, connected to the cluster. Raises LaunchError if no cluster can be used."""
        if self._driver is None:
            driver = DriverProcess()
            try:
                self._address = driver.request("connect", self._address, self._runtime.runtime_env)
            except LaunchError:
                driver.close()
                raise
            self._driver = driver
        return self._driver

    # What the driver reports, in a separate thread.

    def _handle_event(self, kind: str, *content: Any) -> None:
        try:
            with self._lock:
                if kind == "nodes":
                    (self._nodes,) = content
                elif kind in ("gone", "broke"):
                    self._break(content[0])
                elif (sent := self._sent.get(content[0])) is not None:
                    self._handle_task_event(sent, kind, *content[1:])
                self._submit_waiting()
        except Exception as error:  # noqa: BLE001 - an exception in this thread would go unnoticed
            self._receiver.broke(error)

    def _handle_task_event(self, sent: SentTask, kind: str, *content: Any) -> None:
        if kind == "reports":
            for report in sent.in_order(*content):
                if sent.id in self._sent:  # levels that were read while the task ended may come after its end
                    self._take_report(sent, report)
        elif kind == "refused_task":
            self._refuse(sent, content[0])
        else:
            self._lose(sent, *content)

    def _take_report(self, sent: SentTask, report: list[Any]) -> None:
        kind, *content = report
        if kind == "node":
            (sent.node,) = content
        elif kind == "levels":
            (self._levels[sent.number],) = content
        elif kind == "warn":
            self._receiver.warn(f"{sent.node}: {content[0]}")
        elif kind == "ended":
            self._end(sent, Ended(sent.number, *content))
        else:
            sent.take(report, self._receiver.journal)

    def _lose(self, sent: SentTask, error: str, says: str) -> None:
        """End a task that Ray gave up."""
        if error == "TaskCancelledError":
            self._forget(sent)
            self._never_started(sent)
        elif error in ("RuntimeEnvSetupError", "TaskUnschedulableError"):
            self._refuse(sent, f"Ray cannot run it: {says}")
        else:
            where = f" on node {sent.node}" if sent.node else ""
            self._end(sent, Ended(sent.number, None, f"its worker{where} was lost: {says}"))

    def _refuse(self, sent: SentTask, why: str) -> None:
        self._forget(sent)
        with contextlib.suppress(OSError), open(sent.logs["stderr"], "a", encoding="utf-8") as file:
            file.write(f"jobmeter: {why}\n")
        record = unmeasured_record(sent.order, Outcome(Status.FAILED, 125), self._receiver.journal)
        self._receiver.ended(Ended(sent.number, record, why))

    def _end(self, sent: SentTask, ended: Ended) -> None:
        self._forget(sent)
        self._receiver.ended(ended)

    def _forget(self, sent: SentTask) -> None:
        del self._sent[sent.id]
        self._levels.pop(sent.number, None)
        for name, amount in sent.need.items():
            self._reserved[name] -= amount

    def _break(self, says: str) -> None:
        if not self._is_gone:
            self._is_gone = True
            self._receiver.broke(
                LaunchError(
                    f"the Ray cluster at {self._address} is lost: {says}. "
                    "When the cluster is back: jobmeter workflow resume"
                )
            )

    def _check_waiting(self) -> None:
        """At regular intervals, remove cancelled tasks from Ray's queue, and warn of a job that no node can run."""
        while not self._closed.wait(_UNQUEUE_AFTER / 2):
            due = time.monotonic() - _UNQUEUE_AFTER
            with self._lock:
                for sent in self._sent.values():
                    if sent.cancelled_at is not None and sent.cancelled_at < due and not sent.node and self._driver:
                        self._driver.send("unqueue", sent.id)
                for sent in self._waiting[:1] if not self._sent else []:
                    if not fits_somewhere(sent.need, self._nodes):
                        self._receiver.warn(
                            f"job {sent.order.name} waits: no node of the Ray cluster has all it requests"
                        )

    # Which tasks go to the cluster.

    def _submit_waiting(self) -> None:
        """Send the tasks that fit, in the order of their start. The others wait here: Ray's queue has no priorities."""
        while self._waiting and fits_together(self._waiting[0].need, self._reserved, self._nodes):
            sent = self._waiting.pop(0)
            self._sent[sent.id] = sent
            for name, amount in sent.need.items():
                self._reserved[name] = self._reserved.get(name, 0) + amount
            self._receiver.keep_token(sent.order, self._token)
            order = Order(
                sent.id,
                self._key,
                sent.order.as_json(),
                self._marker.made_in(os.path.dirname(sent.order.stdout)),
                working_directory=self._runtime.working_directory,
            )
            assert self._driver is not None
            self._driver.send("submit", order, sent.need, sent.order.name)

    def _never_started(self, sent: SentTask) -> None:
        record = unmeasured_record(sent.order, Outcome(Status.CANCELLED), self._receiver.journal)
        self._receiver.ended(Ended(sent.number, record))
