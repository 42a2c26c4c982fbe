"""Runs a workflow: starts what may start, waits for what ends, tries again what may be, until nothing is left."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

from jobmeter.analyse.overuse import met_limit
from jobmeter.analyse.resource import MEMORY
from jobmeter.engines.contract import Ended, Engine, OnEnd, Task
from jobmeter.engines.local import LocalEngine
from jobmeter.journal.writer import JournalFile, shared_journal
from jobmeter.meter.watch import Sample
from jobmeter.model import Requirement, Status
from jobmeter.session.command import JobOptions, own_environment
from jobmeter.session.measuring import MeasureOptions, ignore, shared_header
from jobmeter.workflow.attempts import Attempt, of_record
from jobmeter.workflow.capacity import Capacity
from jobmeter.workflow.containers import container_command, container_options
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.recovery import next_attempt
from jobmeter.workflow.resume import fingerprint
from jobmeter.workflow.scheduling import Blocked, Scheduler

if TYPE_CHECKING:
    from jobmeter.record.types import WorkflowPart

_SYNC = 1.0
"""Seconds between two times that the journal is made to survive a crash of the machine."""


class RunOptions(NamedTuple):
    store: str
    capacity: Capacity
    enforce: bool = False
    monitoring: bool = True


class Running(NamedTuple):
    """An attempt that runs."""

    job: Job
    attempt: int
    since: float  # monotonic
    requirement: Requirement


class Listener:
    """Told of what happens, in the runner's thread. Override what you want to know."""

    def started(self, running: Running) -> None: ...
    def ended(self, attempt: Attempt, why: str | None, again: Requirement | None) -> None: ...
    def blocked(self, job: Job, by: Job) -> None: ...


class Result(NamedTuple):
    """What became of a workflow."""

    attempts: list[Attempt]  # of this time, in the order in which they ended
    blocked: dict[int, int]  # job → the failed one it needs
    not_begun: int
    stopped: bool
    wall_seconds: float
    concurrency_peak: int

    @property
    def succeeded(self) -> bool:
        return not (self.stopped or self.blocked or self.failed or self.not_begun)

    @property
    def failed(self) -> list[Attempt]:
        """The last attempts of jobs that did not complete."""
        last = {attempt.number: attempt for attempt in self.attempts}
        return [attempt for attempt in last.values() if attempt.status != Status.COMPLETED]


class _Stop(NamedTuple):
    at_once: bool


_Event = Union[Ended, _Stop, Exception]
EngineMaker = Callable[[MeasureOptions, OnEnd, Callable[[str], None]], Engine]


class WorkflowRun:
    """`run` it in one thread; `stop` may be called, and what runs looked at, from any."""

    def __init__(
        self,
        plan: Plan,
        directory: RunDirectory,
        options: RunOptions,
        *,
        before: Sequence[Attempt] = (),
        done: frozenset[int] = frozenset(),
        listener: Listener | None = None,
        warn: Callable[[str], None] = ignore,
        engine: EngineMaker = LocalEngine,
    ) -> None:
        """`before` are attempts of an earlier time, `done` the jobs that need not run again."""
        self.plan = plan
        self.running: dict[int, Running] = {}
        self.attempts: list[Attempt] = []
        self.blocked: dict[int, int] = {}
        self.scheduler = Scheduler(plan.jobs, options.capacity, done)
        self._directory = directory
        self._options = options
        self._listener = listener or Listener()
        self._warn = _once(warn)  # what is wrong with the machine is wrong for every job
        self._make_engine = engine
        self._engine: Engine | None = None
        self._jobs = {job.number: job for job in plan.jobs}
        self._tried: dict[int, int] = {}
        for attempt in before:
            self._tried[attempt.number] = max(attempt.attempt, self._tried.get(attempt.number, 0))
        self._tried_before = dict(self._tried)
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._environment = own_environment()

    def run(self) -> Result:
        """Run to the end and tell what became of it."""
        began = time.monotonic()
        journal = self._open_journal()
        try:
            engine = self._engine = self._make_engine(self._measure_options(journal), self._events.put, self._warn)
            try:
                peak = self._run_all(engine, journal)
            finally:
                if self.running:
                    engine.cancel(at_once=True)
                engine.close()
        finally:
            journal.sync()
            journal.close()
        if journal.failed is not None:
            self._warn(f"the journal is incomplete: {journal.failed}")
        wall = time.monotonic() - began
        return Result(self.attempts, self.blocked, self.scheduler.waiting, self._stopped.is_set(), wall, peak)

    def _run_all(self, engine: Engine, journal: JournalFile) -> int:
        """Returns when nothing runs and nothing may start: how many ran at a time, at most."""
        peak, synced = 0, time.monotonic()
        while True:
            if self._stopped.is_set():
                # Not only when its turn comes: what ended meanwhile makes room, and would be followed by more.
                self.scheduler.stop()
            for job, devices in self.scheduler.startable():
                self._start(engine, job, devices)
            peak = max(peak, len(self.running))
            if not self.running:
                return peak
            event = self._event_before(synced + _SYNC)
            if event is None:
                journal.sync()
                synced = time.monotonic()
                event = self._events.get()
            self._take(engine, event)

    def _event_before(self, moment: float) -> _Event | None:
        """The next event; None when there is none until then."""
        try:
            return self._events.get(timeout=max(moment - time.monotonic(), 0.0))
        except queue.Empty:
            return None

    def stop(self, *, at_once: bool = False) -> None:
        """End the jobs that run and start no more. What is left can be resumed."""
        self._stopped.set()
        self._events.put(_Stop(at_once))

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopped.is_set()

    def levels(self) -> Mapping[int, Sample]:
        """What each running job uses just now."""
        return self._engine.levels() if self._engine is not None else {}

    def _take(self, engine: Engine, event: _Event) -> None:
        if isinstance(event, _Stop):
            engine.cancel(at_once=event.at_once)
        elif isinstance(event, Exception):
            raise event
        else:
            self._ended(event)

    def _start(self, engine: Engine, job: Job, devices: list[int]) -> None:
        attempt = self._tried[job.number] = self._tried.get(job.number, 0) + 1
        requirement = self.scheduler.requirement(job.number)
        running = self.running[job.number] = Running(job, attempt, time.monotonic(), requirement)
        engine.start(self._task(running, devices))
        self._tell(self._listener.started, running)

    def _task(self, running: Running, devices: list[int]) -> Task:
        job, attempt = running.job, running.attempt
        stdout, stderr = self._directory.log_paths(job.name, attempt)
        names = [self._device_name(device) for device in devices]
        told = {"JOBMETER_ATTEMPT": str(attempt)}
        container = None if job.container is None else container_options(job, told, names)
        if names:
            told["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        workflow: WorkflowPart = {
            "id": self._directory.workflow,
            "name": self.plan.name,
            "run_id": self._directory.run_id,
            "job_id": job.number,
            "step": job.step,
            "attempt": attempt,
            "fingerprint": fingerprint(job),
        }
        options = JobOptions(
            command=job.command if container is None else container_command(job),
            directory=job.directory,
            environment={**self._environment, **job.environment, **told},
            requirement=running.requirement,
            enforce=self._options.enforce,
            orphans="end",
            outputs=job.outputs,
            # Ctrl-C is for us: the jobs are ended by our word, and it is known that they were.
            own_session=True,
        )
        return Task(job.number, job.name, job.labels, workflow, options, stdout, stderr, container)

    def _device_name(self, number: int) -> str:
        """What CUDA calls the device; of those that we may see ourselves, when we were given some."""
        ours = [name for name in self._environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        return ours[number] if number < len(ours) else str(number)

    def _ended(self, event: Ended) -> None:
        running = self.running.pop(event.number)
        attempt = of_record(event.record)
        self.attempts.append(attempt)
        job, again = running.job, None
        blocked: Sequence[Blocked] = ()
        if attempt.status == Status.COMPLETED:
            self.scheduler.completed(job.number)
        elif (again := self._recover(running, attempt)) is not None:
            self.scheduler.again(job.number, again)
        elif attempt.status == Status.CANCELLED:
            self.scheduler.cancelled(job.number)
        else:
            blocked = self.scheduler.failed(job.number)
        self._tell(self._listener.ended, attempt, event.why, again)
        for number, by in blocked:
            self.blocked[number] = by
            self._tell(self._listener.blocked, self._jobs[number], self._jobs[by])

    def _recover(self, running: Running, attempt: Attempt) -> Requirement | None:
        if self._stopped.is_set():
            return None
        tried = running.attempt - self._tried_before.get(running.job.number, 0)
        return next_attempt(
            running.job,
            running.requirement,
            attempt.outcome,
            tried,
            self._options.capacity,
            attempt.memory_peak_bytes,
            met_own_limit=attempt.memory_bytes is None or met_limit(attempt.as_row(), MEMORY),
        )

    def _tell(self, listener: Callable[..., None], *what: object) -> None:
        try:
            listener(*what)
        except Exception as error:  # noqa: BLE001 - whoever listens must not stop the work
            self._warn(f"progress cannot be told: {type(error).__name__}: {error}")

    def _open_journal(self) -> JournalFile:
        name = f"{self._directory.workflow}-{self._directory.run_id}"
        path = f"{self._options.store}/journal/{name}"
        part = 1  # each time that the run is resumed begins another
        while os.path.exists(f"{path}-{part}.jsonl"):
            part += 1
        shared = shared_header(self._measurements())
        return shared_journal(self._options.store, f"{name}-{part}", shared)

    def _measurements(self) -> list[str] | None:
        return None if self._options.monitoring and self.plan.monitor.enabled else ["none"]

    def _measure_options(self, journal: JournalFile) -> MeasureOptions:
        monitor = self.plan.monitor
        return MeasureOptions(
            interval=monitor.interval,
            window=monitor.interval,
            measurements=self._measurements(),
            store=self._options.store,
            keep_windows=monitor.granularity == "time_series" or monitor.generate_plots,
            journal=journal,
        )


def _once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Warn of each thing the first time only."""
    told: set[str] = set()

    def warn_once(message: str) -> None:
        if message not in told:
            told.add(message)
            warn(message)

    return warn_once
