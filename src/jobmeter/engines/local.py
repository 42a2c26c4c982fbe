"""Runs jobs on this machine: a thread waits for each, and one meter samples them all."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from jobmeter.engines.contract import Ended, OnEnd, Task
from jobmeter.engines.guard import Guard
from jobmeter.engines.open_files import Descriptors
from jobmeter.errors import CommandNotExecutable, CommandNotFound, JobmeterError, LaunchError
from jobmeter.launch.spawn import LaunchedJob, Streams
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome, Status
from jobmeter.session.command import LaunchedCommand, present_directory
from jobmeter.session.measuring import MeasureOptions, Measuring
from jobmeter.session.session import Session

if TYPE_CHECKING:
    from jobmeter.record.types import Record
    from jobmeter.session.contract import JobControl


class LocalEngine:
    """Any number of tasks at a time; whoever starts them sees to it that they fit."""

    def __init__(self, options: MeasureOptions, on_end: OnEnd, warn: Callable[[str], None]) -> None:
        """`options` are those of every task: journal, interval and what is measured."""
        self._options = options
        self._on_end = on_end
        self._warn = warn
        self._meter = Meter()
        self._lock = threading.Lock()
        self._sessions: dict[int, Session] = {}
        self._levels: dict[int, Sample] = {}
        self._cancelled = self._at_once = False
        self._descriptors = Descriptors()
        # Threads are made as tasks come and used again; each only waits.
        self._threads = ThreadPoolExecutor(self._descriptors.jobs, thread_name_prefix="jobmeter-task")
        try:
            self._threads.submit(int)  # so that there is one, whatever comes
            self._guard = Guard()
            self._nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, RuntimeError) as error:
            self._threads.shutdown(wait=False)
            self._descriptors.restore()
            raise LaunchError(f"no job can be started here: {error}") from None

    def start(self, task: Task) -> None:
        # When the system gives us no further thread, the task waits for one of those there are.
        with contextlib.suppress(RuntimeError):
            self._threads.submit(self._run, task)

    def cancel(self, *, at_once: bool = False) -> None:
        with self._lock:
            self._cancelled = True
            self._at_once = self._at_once or at_once
            sessions = list(self._sessions.values())
        for session in sessions:
            self._end(session)

    def _end(self, session: Session) -> None:
        try:
            session.stop(at_once=self._at_once)
        except OSError as error:  # there is no descriptor left: the others must end too
            self._warn(f"a job could not be ended: {error}")

    def levels(self) -> Mapping[int, Sample]:
        return dict(self._levels)

    def close(self) -> None:
        self._threads.shutdown()
        self._guard.close()
        os.close(self._nothing)
        self._descriptors.restore()

    def _run(self, task: Task) -> None:
        """One attempt. Whatever happens, its end is told: someone waits for it."""
        ended: Ended | Exception
        try:
            ended = self._begin_and_wait(task)
        except Exception as error:  # noqa: BLE001 - nobody would ever look at what a thread of the pool raises
            ended = error
        self._on_end(ended)

    def _begin_and_wait(self, task: Task) -> Ended:
        if self._cancelled:
            return Ended(task.number, self._unbegun(task, Outcome(Status.CANCELLED)))
        try:
            return self._run_to_the_end(task)
        except JobmeterError as error:
            return self._refused(task, error)
        except OSError as error:
            return self._refused(task, JobmeterError(f"{error.filename or task.name}: {error.strerror}"))
        except Exception as error:  # noqa: BLE001 - what goes wrong with one job is not the others' concern
            return self._refused(task, JobmeterError(f"{type(error).__name__}: {error}"))

    def _run_to_the_end(self, task: Task) -> Ended:
        shepherds: list[int] = []

        def before_exec(launched: LaunchedJob) -> None:
            self._guard.add(launched.shepherd, launched.main, launched.group)
            shepherds.append(launched.shepherd)
            self._descriptors.give_back(launched.main)

        def look(sample: Sample) -> None:
            self._levels[task.number] = sample

        streams = _open_streams(self._nothing, task)
        job: JobControl
        try:
            if task.container is None:
                job = LaunchedCommand(task.job._replace(streams=Streams(*streams)), before_exec=before_exec)
            else:
                self._guard.mind_containers()
                job = _in_container(task, Streams(*streams))
            session = Session(job, self._options_of(task), meter=self._meter, warn=self._warn, on_sample=look)
            session.start()
        finally:
            for descriptor in streams[1:]:
                os.close(descriptor)
        try:
            with self._lock:
                self._sessions[task.number] = session
                cancelled = self._cancelled
            if cancelled:
                self._end(session)
            record = session.wait()
            return Ended(task.number, record, _lacking(record, task.job.directory))
        finally:
            with self._lock:
                self._sessions.pop(task.number, None)
            self._levels.pop(task.number, None)
            for shepherd in shepherds:
                self._guard.remove(shepherd)

    def _options_of(self, task: Task) -> MeasureOptions:
        return self._options._replace(name=task.name, labels=task.labels, workflow=task.workflow)

    def _refused(self, task: Task, error: JobmeterError) -> Ended:
        """A job that could not begin has failed, as it would in a shell; its stderr says why."""
        code = error.exit_code if isinstance(error, (CommandNotFound, CommandNotExecutable)) else 125
        try:
            with open(task.stderr, "a", encoding="utf-8") as file:
                file.write(f"jobmeter: {error}\n")
        except OSError:
            pass  # it is told to whoever listens, too
        return Ended(task.number, self._unbegun(task, Outcome(Status.FAILED, code)), str(error))

    def _unbegun(self, task: Task, outcome: Outcome) -> Record:
        measuring = Measuring(self._options_of(task), meter=self._meter, warn=self._warn)
        directory = task.job.directory or present_directory()
        return measuring.record_unstarted(task.job.command, directory, task.job.requirement, outcome)


def _lacking(record: Record, directory: str | None) -> str | None:
    """Why a job failed that ended well."""
    missing = record["provenance"].get("missing_outputs")
    return f"it did not make {os.path.relpath(missing[0], directory or '.')}" if missing else None


def _in_container(task: Task, streams: Streams) -> JobControl:
    # Imported by those who have containers.
    from jobmeter.session.container import LaunchedContainer
    from jobmeter.session.container_job import ContainerJob

    assert task.container is not None
    job = task.job
    return LaunchedContainer(ContainerJob(task.container, job.command, job.requirement, streams, job.outputs))


def _open_streams(stdin: int, task: Task) -> tuple[int, int, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    stdout = os.open(task.stdout, flags, 0o666)
    try:
        return stdin, stdout, os.open(task.stderr, flags, 0o666)
    except OSError:
        os.close(stdout)
        raise
