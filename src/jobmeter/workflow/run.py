"""Runs a workflow: starts what may start, waits for what ends, tries again what may be, until nothing is left."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

from jobmeter.analyse.overuse import met_limit
from jobmeter.analyse.resource import MEMORY
from jobmeter.engines.contract import Capacity, Ended, Engine, LeftTask, Measure, Task, Token
from jobmeter.engines.local import LocalEngine
from jobmeter.journal.writer import RunJournal, append_to_journal
from jobmeter.model import Requirement, Status, Value
from jobmeter.session.measuring import ignore
from jobmeter.workflow.attempts import Attempt, of_record
from jobmeter.workflow.containers import container_command, container_options
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.journal import WorkflowJournal
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.recovery import next_attempt
from jobmeter.workflow.resume import fingerprint
from jobmeter.workflow.scheduling import Blocked, Scheduler
from jobmeter.workflow.task_log import StartedTask, TaskLog

if TYPE_CHECKING:
    from jobmeter.record.types import WorkflowPart

_SYNC = 1.0
"""Seconds between two times that the journal is made to survive a crash of the machine."""


class RunOptions(NamedTuple):
    store: str
    capacity: Capacity
    enforce: bool = False
    monitoring: bool = True
    engine: str = "local"


class Running(NamedTuple):
    """An attempt that runs."""

    job: Job
    attempt: int
    since: float  # monotonic
    requirement: Requirement


class Listener:
    """Called when something happens, in the runner's thread. Override what you want to know."""

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


class _Receiver:
    """Takes what the engine reports. Ends wait in a queue for the runner's thread."""

    def __init__(
        self,
        journal: WorkflowJournal,
        tasks: TaskLog,
        events: queue.SimpleQueue[_Event],
        warn: Callable[[str], None],
    ) -> None:
        self.journal: RunJournal = journal
        self.warn = warn
        self._tasks = tasks
        self._events = events

    def keep_token(self, task: Task, token: Token) -> None:
        try:
            self._tasks.add(task, token)
        except OSError as error:
            # As with the journal, a disk that is full is no reason not to run the job.
            self.warn(f"if this runner is killed, `workflow resume` will not find its jobs: {error.strerror}")

    def ended(self, ended: Ended) -> None:
        self._events.put(ended)

    def broke(self, error: Exception) -> None:
        self._events.put(error)


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
        left: Sequence[StartedTask] = (),
        listener: Listener | None = None,
        warn: Callable[[str], None] = ignore,
        engine: Engine | None = None,
    ) -> None:
        """`before` are attempts of an earlier time, `done` the jobs that need not run again.

        `left` are tasks of a killed runner: the engine may still have those that were started on it.
        """
        self.plan = plan
        self.running: dict[int, Running] = {}
        self.attempts: list[Attempt] = []
        self.blocked: dict[int, int] = {}
        self.scheduler = Scheduler(plan.jobs, options.capacity, done)
        self._directory = directory
        self._options = options
        self._listener = listener or Listener()
        self._warn = _once(warn)  # what is wrong with the machine is wrong for every job
        self._engine: Engine = engine or LocalEngine()
        self._done = done
        self._left = left
        self._jobs = {job.number: job for job in plan.jobs}
        self._tasks: dict[int, Task] = {}
        self._tried: dict[int, int] = {}
        # A task may have been started, and its runner killed before its header was written.
        attempts = [(each.number, each.attempt) for each in before] + [(each.number, each.attempt) for each in left]
        for number, tried in attempts:
            self._tried[number] = max(tried, self._tried.get(number, 0))
        self._tried_before = dict(self._tried)
        self._runs_before = {(attempt.number, attempt.attempt): attempt.run for attempt in before}
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._is_open = False

    def run(self) -> Result:
        """Run to the end and return what became of it."""
        began = time.monotonic()
        name = f"{self._directory.workflow}-{self._directory.run_id}"
        journal = WorkflowJournal(self._options.store, name, self._measurements())
        try:
            tasks = TaskLog(self._directory.tasks, self._options.engine)
            try:
                peak = self._run_on_engine(journal, tasks)
            finally:
                tasks.close()
        finally:
            journal.sync()
            journal.close()
        if journal.failed is not None:
            self._warn(f"the journal is incomplete: {journal.failed}")
        wall = time.monotonic() - began
        return Result(self.attempts, self.blocked, self.scheduler.waiting, self._stopped.is_set(), wall, peak)

    def _run_on_engine(self, journal: WorkflowJournal, tasks: TaskLog) -> int:
        self._engine.open(_Receiver(journal, tasks, self._events, self._warn))
        self._is_open = True
        try:
            self._recover_left()
            return self._run_all(journal, tasks)
        finally:
            self._is_open = False
            if self.running:
                self._engine.cancel(at_once=True)
            self._engine.close()

    def _run_all(self, journal: WorkflowJournal, tasks: TaskLog) -> int:
        """Returns when nothing runs and nothing may start: how many ran at a time, at most."""
        peak, synced = 0, time.monotonic()
        while True:
            if self._stopped.is_set():
                # Not only when its turn comes: what ended meanwhile makes room, and would be followed by more.
                self.scheduler.stop()
            for job in self.scheduler.startable():
                self._start(job, journal)
            peak = max(peak, len(self.running))
            if not self.running:
                return peak
            event = self._event_before(synced + _SYNC)
            if event is None:
                journal.sync()
                tasks.sync()
                synced = time.monotonic()
                event = self._events.get()
            self._take(event, journal)

    def _event_before(self, moment: float) -> _Event | None:
        """The next event; None when there is none until then."""
        try:
            return self._events.get(timeout=max(moment - time.monotonic(), 0.0))
        except queue.Empty:
            return None

    def stop(self, *, at_once: bool = False) -> None:
        """End the jobs that run and start no more; `at_once` skips SIGTERM. What is left can be resumed."""
        self._stopped.set()
        self._events.put(_Stop(at_once))

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        """What each running job uses just now."""
        return self._engine.levels() if self._is_open else {}

    def _take(self, event: _Event, journal: WorkflowJournal) -> None:
        if isinstance(event, _Stop):
            self._engine.cancel(at_once=event.at_once)
        elif isinstance(event, Exception):
            raise event
        else:
            self._ended(event, journal)

    def _recover_left(self) -> None:
        """Have the engine end or adopt what a killed runner left on it."""
        left = {task.number: task for task in self._left if task.engine == self._options.engine}
        if not left:
            return
        recovered = self._engine.recover(
            [LeftTask(each.number, each.attempt, each.token, self._is_wanted(each)) for each in left.values()]
        )
        if recovered.ended:
            jobs = f"{recovered.ended} job{'s' * (recovered.ended > 1)}"
            self._warn(f"ended what was left of {jobs} whose runner was killed")
        for number in recovered.adopted:
            self._adopt(left[number])

    def _is_wanted(self, task: StartedTask) -> bool:
        """Whether the end of a task that was left would be the end of the job as it is now."""
        job = self._jobs.get(task.number)
        if job is None or job.number in self._done or self._stopped.is_set():
            return False
        return self._done.issuperset(job.blocked_by) and task.fingerprint == fingerprint(job)

    def _adopt(self, task: StartedTask) -> None:
        """Take a task that runs already for one that we started. Its lines in our journal begin with its header."""
        job = self._jobs[task.number]
        if (run := self._runs_before.get((task.number, task.attempt))) is not None:
            from jobmeter.store import open_store

            append_to_journal(open_store(self._options.store, self._warn).path(run), {"removed": run})
        self.scheduler.adopt(job.number, task.requirement)
        self._tried[job.number] = task.attempt
        self._tried_before[job.number] = task.attempt - 1
        running = self.running[job.number] = Running(job, task.attempt, time.monotonic(), task.requirement)
        self._tasks[job.number] = self._task(running)
        self._tell(self._listener.started, running)

    def _start(self, job: Job, journal: WorkflowJournal) -> None:
        attempt = self._tried[job.number] = self._tried.get(job.number, 0) + 1
        requirement = self.scheduler.requirement(job.number)
        running = self.running[job.number] = Running(job, attempt, time.monotonic(), requirement)
        task = self._tasks[job.number] = self._task(running)
        journal.forget(job.number)
        self._engine.start(task)
        self._tell(self._listener.started, running)

    def _task(self, running: Running) -> Task:
        job, attempt = running.job, running.attempt
        stdout, stderr = self._directory.log_paths(job.name, attempt)
        added = {"JOBMETER_ATTEMPT": str(attempt)}
        in_container = job.container is not None
        workflow: WorkflowPart = {
            "id": self._directory.workflow,
            "name": self.plan.name,
            "run_id": self._directory.run_id,
            "job_id": job.number,
            "step": job.step,
            "attempt": attempt,
            "fingerprint": fingerprint(job),
        }
        return Task(
            number=job.number,
            attempt=attempt,
            name=job.name,
            command=container_command(job) if in_container else job.command,
            directory=job.directory,
            environment={**job.environment, **added},
            stdout=stdout,
            stderr=stderr,
            workflow=workflow,
            requirement=running.requirement,
            enforce=self._options.enforce,
            outputs=job.outputs,
            labels=job.labels,
            measure=self._measure(),
            container=container_options(job, added) if in_container else None,
        )

    def _ended(self, event: Ended, journal: WorkflowJournal) -> None:
        running, task = self.running.pop(event.number), self._tasks.pop(event.number)
        attempt = of_record(journal.end_lost(task) if event.record is None else event.record)
        self.attempts.append(attempt)
        job, again = running.job, None
        blocked: Sequence[Blocked] = ()
        if attempt.status == Status.COMPLETED:
            self.scheduler.completed(job.number)
        elif (again := self._next_requirement(running, attempt)) is not None:
            self.scheduler.again(job.number, again)
        elif attempt.status == Status.CANCELLED:
            self.scheduler.cancelled(job.number)
        else:
            blocked = self.scheduler.failed(job.number)
        self._tell(self._listener.ended, attempt, event.why, again)
        for number, by in blocked:
            self.blocked[number] = by
            self._tell(self._listener.blocked, self._jobs[number], self._jobs[by])

    def _next_requirement(self, running: Running, attempt: Attempt) -> Requirement | None:
        """What the next attempt requests; None when there is none."""
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
            retries_elsewhere=self._engine.capabilities.retries_elsewhere,
        )

    def _tell(self, listener: Callable[..., None], *what: object) -> None:
        try:
            listener(*what)
        except Exception as error:  # noqa: BLE001 - whoever listens must not stop the work
            self._warn(f"progress cannot be shown: {type(error).__name__}: {error}")

    def _measurements(self) -> list[str] | None:
        return None if self._options.monitoring and self.plan.monitor.enabled else ["none"]

    def _measure(self) -> Measure:
        monitor = self.plan.monitor
        return Measure(
            interval=monitor.interval,
            window=monitor.interval,
            measurements=self._measurements(),
            keep_windows=monitor.granularity == "time_series" or monitor.generate_plots,
        )


def _once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Warn of each thing the first time only."""
    messages: set[str] = set()

    def warn_once(message: str) -> None:
        if message not in messages:
            messages.add(message)
            warn(message)

    return warn_once
