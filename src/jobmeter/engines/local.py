"""Runs jobs on this machine: a thread waits for each, and one meter samples them all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from jobmeter.engines.contract import Ended, OnEnd, Task
from jobmeter.engines.guard import Guard
from jobmeter.errors import CommandNotExecutable, CommandNotFound, JobmeterError
from jobmeter.launch.spawn import Streams
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome
from jobmeter.session.measuring import MeasureOptions, Measuring
from jobmeter.session.run import Session, present_directory


class LocalEngine:
    """Any number of tasks at a time; whoever starts them sees to it that they fit."""

    def __init__(self, options: MeasureOptions, on_end: OnEnd, warn: Callable[[str], None]) -> None:
        """`options` are those of every task: journal, interval and what is measured."""
        self._options = options
        self._on_end = on_end
        self._warn = warn
        self._meter = Meter()
        self._guard = Guard()
        self._nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._sessions: dict[int, Session] = {}
        self._levels: dict[int, Sample] = {}
        self._cancelled = False
        # Threads are made as tasks come and used again; each only waits.
        self._threads = ThreadPoolExecutor(max_workers=100_000, thread_name_prefix="jobmeter-task")

    def start(self, task: Task) -> None:
        self._threads.submit(self._run, task)

    def cancel(self, *, at_once: bool = False) -> None:
        with self._lock:
            self._cancelled = True
            sessions = list(self._sessions.values())
        for session in sessions:
            session.cancel(at_once=at_once)

    def levels(self) -> Mapping[int, Sample]:
        return dict(self._levels)

    def close(self) -> None:
        self._threads.shutdown()
        self._guard.close()
        os.close(self._nothing)

    def _run(self, task: Task) -> None:
        try:
            ended = self._run_to_the_end(task)
        except JobmeterError as error:
            ended = self._refused(task, error)
        except OSError as error:
            ended = self._refused(task, JobmeterError(f"{error.filename or task.name}: {error.strerror}"))
        self._on_end(ended)

    def _run_to_the_end(self, task: Task) -> Ended:
        shepherds: list[int] = []

        def at_gate(shepherd: int) -> None:
            self._guard.add(shepherd)
            shepherds.append(shepherd)

        def look(sample: Sample) -> None:
            self._levels[task.number] = sample

        streams = _open_streams(self._nothing, task)
        try:
            session = Session(
                task.job._replace(streams=Streams(*streams)),
                self._options_of(task),
                meter=self._meter,
                warn=self._warn,
                on_sample=look,
                on_gate=at_gate,
            )
            session.start()
        finally:
            for descriptor in streams[1:]:
                os.close(descriptor)
        try:
            with self._lock:
                self._sessions[task.number] = session
                cancelled = self._cancelled
            if cancelled:
                session.cancel()
            return Ended(task.number, session.wait())
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
            pass  # it is told in the record too
        measuring = Measuring(self._options_of(task), meter=self._meter, warn=self._warn)
        directory = task.job.directory or present_directory()
        record = measuring.refuse(task.job.command, directory, task.job.requirement, Outcome("failed", code))
        return Ended(task.number, record, str(error))


def _open_streams(stdin: int, task: Task) -> tuple[int, int, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    stdout = os.open(task.stdout, flags, 0o666)
    try:
        return stdin, stdout, os.open(task.stderr, flags, 0o666)
    except OSError:
        os.close(stdout)
        raise
