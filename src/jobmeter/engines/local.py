"""Runs jobs on this machine: a thread waits for each, and one meter samples them all."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from jobmeter.engines.contract import (
    Capabilities,
    Capacity,
    Ended,
    EngineOption,
    LeftTask,
    Receiver,
    Recovered,
    Task,
    Token,
)
from jobmeter.engines.devices import Devices
from jobmeter.engines.guard import Guard
from jobmeter.engines.machine_capacity import machine_capacity
from jobmeter.engines.open_files import Descriptors
from jobmeter.engines.task_run import TaskRun
from jobmeter.errors import LaunchError
from jobmeter.journal.writer import RunJournal
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import Identity
from jobmeter.launch.leftover_jobs import LeftJob, end_jobs, identity_of
from jobmeter.launch.spawn import LaunchedJob
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Value
from jobmeter.session.command import own_environment


class LocalEngine:
    """Runs any number of tasks at a time. The caller makes sure that they fit on this machine."""

    options: Sequence[EngineOption] = ()
    capabilities = Capabilities()
    is_in_a_worker = False  # True: in a worker of another program, which kills the children of its workers

    def __init__(self, options: Mapping[str, str] = {}) -> None:
        """It has no options."""
        self._environment: Mapping[str, str] = own_environment()
        self._devices = Devices(self._environment.get("CUDA_VISIBLE_DEVICES", ""))
        self._meter = Meter()
        self._lock = threading.Lock()
        self._runs: dict[int, TaskRun] = {}
        self._levels: dict[int, Mapping[str, Value]] = {}
        self._cancelled = self._at_once = False
        self._cancelled_tasks: set[int] = set()  # cancelled before a thread began to run them
        self._receiver: Receiver
        self._guard: Guard

    def check(self, container_runtimes: Collection[str] = ()) -> None:
        if container_runtimes:
            from jobmeter.launch.container.runtime import open_runtime

            for runtime in sorted(container_runtimes):
                open_runtime(runtime).close()

    def capacity(self) -> Capacity:
        return machine_capacity()

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._descriptors = Descriptors()
        # Threads are started as tasks come, and reused. Each only waits for its job.
        self._threads = ThreadPoolExecutor(self._descriptors.jobs, thread_name_prefix="jobmeter-task")
        try:
            self._threads.submit(int)  # so that there is one thread, even if no more can be started later
            self._guard = Guard(detached=self.is_in_a_worker)
        except (OSError, RuntimeError) as error:
            self._threads.shutdown(wait=False)
            self._descriptors.restore()
            raise LaunchError(f"no job can be started here: {error}") from None

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        """End what still runs on this machine: it has not been measured since its runner was killed."""
        here = [task.token for task in tasks if task.token.get("host") == os.uname().nodename]
        for host in sorted({str(task.token.get("host")) for task in tasks} - {os.uname().nodename}):
            self._receiver.warn(f"jobs that a killed runner may have left on {host} can only be ended there")
        if any(token.get("container") for token in here):
            from jobmeter.launch.container.leftovers import clean

            clean(THIS_MACHINE)
        return Recovered(end_jobs(THIS_MACHINE, [left_job(token) for token in here if "shepherd" in token]))

    def start(self, task: Task) -> None:
        with self._lock:
            self._cancelled_tasks.discard(task.number)  # an earlier attempt was cancelled
        # If the system allows no further thread, the task waits for an existing one.
        with contextlib.suppress(RuntimeError):
            self._threads.submit(self._run, task)

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        with self._lock:
            if number is None:
                self._cancelled = True
                self._at_once = self._at_once or at_once
            elif number not in self._runs:
                self._cancelled_tasks.add(number)
            runs = [run for run in self._runs.values() if number in (None, run.task.number)]
        for run in runs:
            run.cancel(at_once=at_once)

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        return dict(self._levels)

    def journal_of(self, task: Task) -> RunJournal:
        """The journal that takes the lines of this task."""
        return self._receiver.journal

    def close(self) -> None:
        self._threads.shutdown()
        self._guard.close()
        self._descriptors.restore()

    def _run(self, task: Task) -> None:
        """Run one attempt. Its end, or a failure of the engine, is always reported: the runner waits for it."""
        try:
            ended = self._run_task(task)
        except Exception as error:  # noqa: BLE001 - an exception in a thread of the pool would go unnoticed
            self._receiver.broke(error)
        else:
            self._receiver.ended(ended)

    def _run_task(self, task: Task) -> Ended:
        shepherds: list[int] = []

        def before_exec(launched: LaunchedJob) -> None:
            self._guard.add(launched.shepherd, launched.main, launched.group)
            shepherds.append(launched.shepherd)
            self._receiver.keep_token(task, _token(launched))
            self._descriptors.restore_limit(launched.main)

        def on_sample(sample: Sample) -> None:
            self._levels[task.number] = sample.values

        if task.container is not None:
            self._guard.report_containers()
            self._receiver.keep_token(task, {"host": os.uname().nodename, "container": True})
        devices = self._devices.acquire(task.requirement.gpus or 0)
        run = TaskRun(
            task,
            self.journal_of(task),
            self._environment,
            devices=[self._devices.name(device) for device in devices],
            meter=self._meter,
            warn=self._receiver.warn,
            on_sample=on_sample,
            before_exec=before_exec,
        )
        with self._lock:
            self._runs[task.number] = run
            cancelled = self._cancelled or task.number in self._cancelled_tasks
        if cancelled:
            run.cancel(at_once=self._at_once)
        try:
            return run.run()
        finally:
            with self._lock:
                self._runs.pop(task.number, None)
            self._levels.pop(task.number, None)
            self._devices.release(devices)
            for shepherd in shepherds:
                self._guard.remove(shepherd)


def _token(launched: LaunchedJob) -> Token:
    """The token of a job. Pids are reused: with the start times it can be checked whether these processes still run."""
    token: Token = {"host": os.uname().nodename}
    for name, pid in (("shepherd", launched.shepherd), ("main", launched.main)):
        if (identity := identity_of(THIS_MACHINE, pid)) is not None:
            token[name] = list(identity)
    return token if launched.group is None else {**token, "group": launched.group}


def left_job(token: Token) -> LeftJob:
    """The job of a token, which must have a shepherd."""
    main = Identity(*token["main"]) if "main" in token else None
    return LeftJob(Identity(*token["shepherd"]), main, token.get("group"))
