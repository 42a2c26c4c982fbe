"""What jobs of a workflow wrote to stdout and stderr, also while they run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jobmeter.errors import StoreError, UsageError
from jobmeter.links import open_existing
from jobmeter.model import Status
from jobmeter.session.measuring import ignore
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.find_job import JobName
from jobmeter.workflow.history import StoredRun, stored_run
from jobmeter.workflow.status import JobStatus

STDOUT, STDERR = 1, 2
_BLOCK = 65536
_LOOK = 0.1
"""Seconds between two reads of the log files."""
_STATUS_LOOK = 0.3
"""Seconds between two checks of the job's status, at least. A check costs more than a read."""
_STATUS_COST = 0.05
"""At most this share of the time is spent on checking the job's status."""


class Piece(NamedTuple):
    """A part of what a job wrote, unchanged."""

    stream: int  # STDOUT or STDERR
    content: bytes


class AttemptLog:
    """What one attempt wrote. Each `read` continues where the last one ended."""

    def __init__(
        self, directory: RunDirectory, job: str, attempt: int, streams: Sequence[int], last_lines: int | None = None
    ) -> None:
        """`last_lines` bounds how many lines of each stream the first `read` returns."""
        self.attempt = attempt
        self._files: list[tuple[int, int]] = []
        try:
            for stream, path in zip((STDOUT, STDERR), directory.log_paths(job, attempt)):
                if stream in streams and os.path.exists(path):  # a job that could not start has only a stderr
                    self._files.append((stream, open_existing(path, os.O_RDONLY)))
        except OSError as error:
            self.close()
            raise StoreError(f"{error.filename}: {error.strerror}") from None
        if last_lines is not None:
            for _, descriptor in self._files:
                _seek_last_lines(descriptor, last_lines)

    def read(self) -> Iterator[Piece]:
        for stream, descriptor in self._files:
            while content := os.read(descriptor, _BLOCK):
                yield Piece(stream, content)

    def close(self) -> None:
        for _, descriptor in self._files:
            os.close(descriptor)
        self._files = []


def logged_attempts(directory: RunDirectory, job: str) -> list[int]:
    """The numbers of the attempts at a job that have logs, ascending."""
    return sorted(attempt for name, attempt in _logs(directory) if name == job)


def logged_jobs(directory: RunDirectory) -> set[str]:
    """The names of the jobs that have logs."""
    return {name for name, _ in _logs(directory)}


def _logs(directory: RunDirectory) -> Iterator[tuple[str, int]]:
    """Job and attempt of each log."""
    try:
        files = os.listdir(directory.logs)
    except OSError:
        return
    for file in files:
        stem, _, suffix = file.rpartition(".")
        job, _, attempt = stem.rpartition(".")
        # This file is created after the one of stdout: once it exists, so does the other.
        if suffix == "err" and attempt.isdecimal():
            yield job, int(attempt)


def attempt_log(
    stored: StoredRun,
    job: JobName,
    attempt: int | None,
    streams: Sequence[int],
    last_lines: int | None = None,
) -> AttemptLog:
    """The log of this attempt, or of the last one if None. Raises UsageError if there is none."""
    attempts = logged_attempts(stored.directory, job.name)
    if not attempts:
        raise UsageError(_why_nothing(job, _status(stored, job)))
    if attempt is not None and attempt not in attempts:
        there = ", ".join(map(str, attempts))
        raise UsageError(f"job {job.name} has no output of attempt {attempt}. There is output of: {there}.")
    return AttemptLog(stored.directory, job.name, attempt or attempts[-1], streams, last_lines)


def follow_log(
    stored: StoredRun,
    job: JobName,
    attempt: int | None,
    streams: Sequence[int],
    last_lines: int | None = None,
    on_attempt: Callable[[int], None] = lambda _: None,
) -> Iterator[Piece]:
    """Yield what the job writes until it is settled; with `attempt`, what that attempt writes until it ends.

    If the job has not started, wait for it. `on_attempt` is called with the number of each attempt before its output
    comes. Raises UsageError if there is no output and none will come.
    """
    watched = _Watched(stored, job, attempt)
    log: AttemptLog | None = None
    try:
        while True:
            is_over = watched.is_over()
            following = _following(stored.directory, job.name, log, attempt)
            if log is not None:
                yield from log.read()
            for number in following:
                on_attempt(number)
                if log is not None:
                    log.close()
                    last_lines = None  # a later attempt is shown from its start
                log = AttemptLog(stored.directory, job.name, number, streams, last_lines)
                yield from log.read()
            if is_over:
                if log is None:
                    attempt_log(watched.stored, job, attempt, streams).close()  # raises: there is none
                return
            time.sleep(_LOOK)
    finally:
        if log is not None:
            log.close()


def _following(directory: RunDirectory, job: str, log: AttemptLog | None, attempt: int | None) -> list[int]:
    """The attempts to show next: at first the last one, later all that are newer than the one shown."""
    attempts = logged_attempts(directory, job)
    if attempt is not None:
        return [attempt] if log is None and attempt in attempts else []
    return attempts[-1:] if log is None else [number for number in attempts if number > log.attempt]


class _Watched:
    """Whether a job, or one attempt at it, is over. May be asked often: the status is read only from time to time."""

    def __init__(self, stored: StoredRun, job: JobName, attempt: int | None) -> None:
        self.stored = stored  # as of the last check
        self._job = job
        self._attempt = attempt
        self._again_at = 0.0

    def is_over(self) -> bool:
        """Whether no more output will come; False until the next check is due."""
        began = time.monotonic()
        if began < self._again_at:
            return False
        is_over = self._look()
        now = time.monotonic()
        self._again_at = now + max(_STATUS_LOOK, (now - began) / _STATUS_COST)
        return is_over

    def _look(self) -> bool:
        directory = self.stored.directory
        is_being_run = directory.is_being_run()
        stored = self.stored = stored_run(directory.store, directory.workflow, directory.run_id, ignore)
        if not is_being_run:
            return True
        if self._attempt is not None and any(
            each.status != Status.RUNNING
            for each in stored.attempts
            if (each.number, each.attempt) == (self._job.number, self._attempt)
        ):
            return True
        return _status(stored, self._job).status not in (Status.RUNNING, "waiting")


def _status(stored: StoredRun, job: JobName) -> JobStatus:
    return next(each for each in stored.status().jobs if each.number == job.number)


def _why_nothing(job: JobName, status: JobStatus) -> str:
    if status.status == "waiting":
        return f"job {job.name} has not started yet, so there is no output. Use -f to wait for it."
    if status.status == "blocked":
        return f"job {job.name} did not run: it {status.reason}"
    if status.status == Status.CANCELLED:
        return f"job {job.name} was cancelled before it started: there is no output"
    return f"job {job.name} is {status.status}, but its log files no longer exist"


def _seek_last_lines(descriptor: int, count: int) -> None:
    """Set the file position so that `count` lines follow; the last line may lack its newline."""
    position = size = os.fstat(descriptor).st_size
    missing = count
    while position > 0:
        start = max(position - _BLOCK, 0)
        block = os.pread(descriptor, position - start, start)
        # No line begins after a newline at the end of the file.
        end = len(block) - 1 if position == size else len(block)
        while missing > 0 and (line_end := block.rfind(b"\n", 0, end)) >= 0:
            missing -= 1
            end = line_end
        if missing == 0:
            os.lseek(descriptor, start + end + 1 if count else size, os.SEEK_SET)
            return
        position = start
