"""Runs a workflow: starts the jobs that may start, waits for them, retries failed ones, until none is left."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from jobmeter.analyse.outcome import in_words
from jobmeter.analyse.overuse import reached_limit
from jobmeter.analyse.resource import MEMORY
from jobmeter.engines.contract import Ended, Engine, Task
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.model import Outcome, Requirement, Status, Value
from jobmeter.session.measuring import ignore
from jobmeter.workflow.attempt_numbers import AttemptNumbers
from jobmeter.workflow.attempts import Attempt, of_record
from jobmeter.workflow.control import CancelJob, ControlPipe
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.failure_handling import matching_rule
from jobmeter.workflow.journal import WorkflowJournal
from jobmeter.workflow.left_tasks import LeftTasks, is_wanted
from jobmeter.workflow.listener import Listener, Running
from jobmeter.workflow.plan import FailureRule, Job, Plan
from jobmeter.workflow.receiver import Event, EventReceiver, Stop
from jobmeter.workflow.recovery import next_attempt
from jobmeter.workflow.recovery_scripts import Recovery, RecoveryScripts
from jobmeter.workflow.result import Result
from jobmeter.workflow.scheduling import Scheduler
from jobmeter.workflow.settled import SettledJob, SettledLog
from jobmeter.workflow.task_log import StartedTask, TaskLog
from jobmeter.workflow.task_maker import RunOptions, TaskMaker
from jobmeter.workflow.warning import warn_once

_SYNC = 1.0
"""Seconds between two fsyncs of the journal, with which it survives a crash of the machine."""


class WorkflowRun:
    """One run of a workflow. `run` is called in one thread; `stop`, `cancel` and all that reads its state in any."""

    def __init__(
        self,
        plan: Plan,
        directory: RunDirectory,
        options: RunOptions,
        *,
        engine: Engine,
        before: Sequence[Attempt] = (),
        done: frozenset[int] = frozenset(),
        left: Sequence[StartedTask] = (),
        listener: Listener | None = None,
        warn: Callable[[str], None] = ignore,
    ) -> None:
        """`before` are the attempts of earlier runners, `done` the jobs that need not run again.

        `left` are tasks of a killed runner: the engine may still run those that were started on it.
        """
        self.plan = plan
        self.running: dict[int, Running] = {}
        self._began: dict[int, float] = {}  # when jobs began to run, as far as the engine reported it
        self.attempts: list[Attempt] = []
        self.blocked: dict[int, int] = {}
        self.scheduler = Scheduler(plan.jobs, options.capacity, done)
        self._directory = directory
        self._options = options
        self._task_maker = TaskMaker(plan, directory, options)
        self._listener = listener or Listener()
        self._warn = warn_once(warn)
        self._engine = engine
        self._done = done
        self._left = LeftTasks(left, options.engine, before)
        self._jobs = {job.number: job for job in plan.jobs}
        self._tasks: dict[int, Task] = {}
        # A runner may be killed after it started a task and before it wrote its header: then only `left` has the task.
        tried_before = [(each.number, each.attempt) for each in left]
        self._attempt_numbers = AttemptNumbers(tried_before + [(each.number, each.attempt) for each in before])
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stopped = threading.Event()
        last_number = max((*self._jobs, *(each.number for each in before)), default=0)
        self._recovery_scripts = RecoveryScripts(self._task_maker, last_number)
        self._cancelling: dict[int, list[str]] = {}  # running job → the requests to cancel it
        self._settled_log: SettledLog
        self._is_open = False

    def run(self) -> Result:
        """Run the workflow to its end and return the result."""
        began = time.monotonic()
        name = f"{self._directory.workflow}-{self._directory.run_id}"
        journal = WorkflowJournal(self._options.store, name, self._task_maker.measurements(), self._note_begin)
        try:
            with (
                contextlib.closing(self._open_task_log()) as tasks,
                contextlib.closing(SettledLog(self._directory.settled)) as self._settled_log,
                ControlPipe(self._directory.control, self._events.put),
            ):
                peak = self._run_on_engine(journal, tasks)
        finally:
            journal.sync()
            journal.close()
        if journal.failed is not None:
            self._warn(f"the journal is incomplete: {journal.failed}")
        wall = time.monotonic() - began
        return Result(self.attempts, self.blocked, self.scheduler.waiting, self._stopped.is_set(), wall, peak)

    def _open_task_log(self) -> TaskLog:
        return TaskLog(self._directory.tasks, self._options.engine, self._options.engine_options)

    def _run_on_engine(self, journal: WorkflowJournal, tasks: TaskLog) -> int:
        self._engine.open(EventReceiver(journal, tasks, self._events, self._warn))
        self._is_open = True
        try:
            # Readers must not see lines of an adopted task together with those that the killed runner wrote of it.
            with journal.hold():
                for task in self._left.recover(self._engine, self._is_wanted, self._warn):
                    self._adopt(task)
            return self._run_all(journal, tasks)
        finally:
            self._is_open = False
            if self.running:
                self._engine.cancel(at_once=True)
            self._engine.close()

    def _run_all(self, journal: WorkflowJournal, tasks: TaskLog) -> int:
        """Run jobs until none runs and none may start; return the largest number that ran at a time."""
        peak, synced = 0, time.monotonic()
        while True:
            if self._stopped.is_set():
                # Do not wait for the Stop event: jobs that ended before it make room, and others would start there.
                self.scheduler.stop()
            for job in self.scheduler.startable(time.monotonic()):
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

    def _event_before(self, moment: float) -> Event | None:
        """The next event; None if there is none until `moment`."""
        try:
            return self._events.get(timeout=max(moment - time.monotonic(), 0.0))
        except queue.Empty:
            return None

    def stop(self, *, at_once: bool = False) -> None:
        """End the running jobs and start no more; `at_once` skips SIGTERM. The workflow can be resumed later."""
        self._stopped.set()
        self._events.put(Stop(at_once))

    def cancel(self, number: int) -> None:
        """End one job, or do not start it. Jobs that need it are blocked, and the others go on."""
        self._events.put(CancelJob(number))

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        """What each running job uses at the moment."""
        return self._engine.levels() if self._is_open else {}

    def is_queued(self, running: Running) -> bool:
        """Whether the attempt waits in the queue of the engine."""
        return self._engine.capabilities.has_queue and running.job.number not in self._began

    def began_at(self, running: Running) -> float:
        """When the attempt began to run (monotonic); if the engine has not reported that, when the engine got it."""
        return self._began.get(running.job.number, running.since)

    def _note_begin(self, number: int) -> None:
        self._began[number] = time.monotonic()

    def _take(self, event: Event, journal: WorkflowJournal) -> None:
        if isinstance(event, Stop):
            self._engine.cancel(at_once=event.at_once)
        elif isinstance(event, CancelJob):
            self._cancel(event, journal)
        elif isinstance(event, Exception):
            raise event
        else:
            self._ended(event, journal)

    def _is_wanted(self, task: StartedTask) -> bool:
        return not self._stopped.is_set() and is_wanted(task, self._jobs.get(task.number), self._done)

    def _adopt(self, task: StartedTask) -> None:
        """Treat a task that already runs as one that we started. Its lines in our journal begin with its header."""
        job = self._jobs[task.number]
        self._left.remove_run(task, self._options.store, self._warn)
        self.scheduler.adopt(job.number, task.requirement, time.monotonic())
        self._attempt_numbers.adopt(job.number, task.attempt)
        running = self.running[job.number] = Running(job, task.attempt, time.monotonic(), task.requirement)
        self._tasks[job.number] = self._task(running)
        self._notify(self._listener.started, running)

    def _start(self, job: Job, journal: WorkflowJournal) -> None:
        attempt = self._attempt_numbers.begin(job.number)
        requirement = self.scheduler.requirement(job.number)
        running = self.running[job.number] = Running(job, attempt, time.monotonic(), requirement)
        task = self._tasks[job.number] = self._task(running)
        journal.forget(job.number)
        self._began.pop(job.number, None)
        self._engine.start(task)
        self._notify(self._listener.started, running)

    def _task(self, running: Running) -> Task:
        return self._task_maker.task(running.job, running.attempt, running.requirement)

    def _ended(self, event: Ended, journal: WorkflowJournal) -> None:
        running, task = self.running.pop(event.number), self._tasks.pop(event.number)
        self._began.pop(event.number, None)
        attempt = of_record(journal.end_lost(task) if event.record is None else event.record)
        if (recovery := self._recovery_scripts.end(event.number)) is not None:
            self._recovered(recovery, attempt)
            return
        self.attempts.append(attempt)
        job, again = running.job, None
        requests = self._cancelling.pop(job.number, [])
        if attempt.status == Status.COMPLETED:
            self.scheduler.completed(job.number)
            self._note_settled(job.number, attempt.attempt, attempt.status, requests)
        elif not requests and (again := self._next_requirement(running, attempt)) is not None:
            self.scheduler.retry(job.number, again)
        elif not requests and attempt.status == Status.CANCELLED:
            self.scheduler.cancelled(job.number)  # with the whole workflow: jobs that need it wait
            self._note_settled(job.number, attempt.attempt, attempt.status, [None])
        elif not requests and (rule := self._failure_rule(running, attempt)) is not None:
            if rule.script is not None:
                self._start_recovery(rule.script, running, attempt)
                return
            again = running.requirement
            self.scheduler.retry(job.number, again)
        else:
            self._give_up(attempt, event.why, requests)
            return
        self._notify(self._listener.ended, attempt, event.why, again)

    def _failure_rule(self, running: Running, attempt: Attempt) -> FailureRule | None:
        if self._stopped.is_set():
            return None
        tries = self._attempt_numbers.own(running.job.number, running.attempt)
        return matching_rule(running.job, attempt.outcome, tries)

    def _start_recovery(self, script: str, running: Running, attempt: Attempt) -> None:
        """Run the script of a failure handler; until it ends, the job keeps the room that its request occupies."""
        recovering, task = self._recovery_scripts.begin(script, running, attempt)
        number = recovering.job.number
        self.running[number], self._tasks[number] = recovering, task
        self._engine.start(task)
        self._notify(self._listener.recovering, attempt, script)

    def _recovered(self, recovery: Recovery, script: Attempt) -> None:
        """Handle the end of a recovery script: if it succeeded, the job is tried again."""
        number = recovery.running.job.number
        requests = self._cancelling.pop(number, [])
        if script.status == Status.COMPLETED and not requests and not self._stopped.is_set():
            self.scheduler.retry(number, recovery.running.requirement)
            return
        why = f"{in_words(recovery.attempt.outcome)}, and its recovery script {in_words(script.outcome)}"
        self._give_up(recovery.attempt, why, requests)

    def _give_up(self, attempt: Attempt, why: str | None, requests: Sequence[str]) -> None:
        """Settle a job that failed for good or was cancelled on request: jobs that need it are blocked."""
        if requests and attempt.status == Status.CANCELLED:
            why = "cancelled on request"
        blocked = self.scheduler.failed(attempt.number)
        self._note_settled(attempt.number, attempt.attempt, attempt.status, requests or [None])
        self._notify(self._listener.ended, attempt, why, None)
        for number, by in blocked:
            self.blocked[number] = by
            self._notify(self._listener.blocked, self._jobs[number], self._jobs[by])

    def _cancel(self, event: CancelJob, journal: WorkflowJournal) -> None:
        """Cancel one job, whether it waits, runs or is being recovered. If it is settled, only answer the request."""
        number = event.number
        scripts = self._recovery_scripts.of_job(number)
        if number in self.running or scripts:
            self._cancelling.setdefault(number, []).append(event.request)
            for task in scripts or [number]:
                self._engine.cancel(task)
        elif number not in self._jobs or self.scheduler.is_settled(number):
            last = [each for each in self.attempts if each.number == number]
            status = last[-1].status if last else Status.COMPLETED if number in self._done else "blocked"
            self._note_settled(number, last[-1].attempt if last else 0, status, [event.request])
        else:
            attempt = self._never_started(self._jobs[number], journal)
            self.attempts.append(attempt)
            self._give_up(attempt, None, [event.request])

    def _never_started(self, job: Job, journal: WorkflowJournal) -> Attempt:
        """Write to the journal, and return, the attempt of a job that was cancelled while it waited."""
        number = self._attempt_numbers.begin(job.number)
        waiting = Running(job, number, time.monotonic(), self.scheduler.requirement(job.number))
        record = unmeasured_record(self._task(waiting), Outcome(Status.CANCELLED), journal)
        self._began.pop(job.number, None)
        return of_record(record)

    def _note_settled(self, number: int, attempt: int, status: str, requests: Sequence[str | None]) -> None:
        """Log that a job is settled, with a line for each request to cancel it; None stands for no request."""
        for request in requests:
            try:
                self._settled_log.add(SettledJob(number, attempt, status, request))
            except OSError as error:
                self._warn(f"{self._directory.settled}: {error.strerror}")

    def _next_requirement(self, running: Running, attempt: Attempt) -> Requirement | None:
        """What the next attempt requests; None if there is no next attempt."""
        if self._stopped.is_set():
            return None
        return next_attempt(
            running.job,
            running.requirement,
            attempt.outcome,
            self._attempt_numbers.own(running.job.number, running.attempt),
            self._options.capacity,
            attempt.figure("memory_peak_bytes"),
            met_own_limit=attempt.memory_bytes is None or reached_limit(attempt.as_row(), MEMORY),
            retries_elsewhere=self._engine.capabilities.retries_elsewhere,
        )

    def _notify(self, listener: Callable[..., None], *what: object) -> None:
        try:
            listener(*what)
        except Exception as error:  # noqa: BLE001 - an error of a listener must not stop the work
            self._warn(f"progress cannot be shown: {type(error).__name__}: {error}")
