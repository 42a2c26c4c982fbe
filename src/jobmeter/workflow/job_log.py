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
"""Seconds between two looks at what was written."""
_STATUS_LOOK = 0.3
"""Seconds between two looks at how far the job is, which cost more."""
_STATUS_COST = 0.05
"""Of the time, at most this share goes into looking how far the job is."""


class Piece(NamedTuple):
    """A part of what a job wrote, as it wrote it."""

    stream: int  # STDOUT or STDERR
    content: bytes


class AttemptLog:
    """What one attempt wrote, read from where the last reading ended."""

    def __init__(
        self, directory: RunDirectory, job: str, attempt: int, streams: Sequence[int], last_lines: int | None = None
    ) -> None:
        """`last_lines` bounds how many lines of each stream the first reading has."""
        self.attempt = attempt
        self._files: list[tuple[int, int]] = []
        try:
            for stream, path in zip((STDOUT, STDERR), directory.log_paths(job, attempt)):
                if stream in streams and os.path.exists(path):  # a job that could not start has a stderr alone
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
    """The attempts at a job that there is output of, in their order."""
    return sorted(attempt for name, attempt in _logs(directory) if name == job)


def logged_jobs(directory: RunDirectory) -> set[str]:
    """The names of the jobs that there is output of."""
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
        # The second of both files: whoever finds it finds the other too.
        if suffix == "err" and attempt.isdecimal():
            yield job, int(attempt)


def attempt_log(
    stored: StoredRun,
    job: JobName,
    attempt: int | None,
    streams: Sequence[int],
    last_lines: int | None = None,
) -> AttemptLog:
    """The log of this attempt, or of the last. UsageError when there is none."""
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
    """What the job writes, until it is settled; of one attempt, until that has ended.

    A job that waits is waited for. `on_attempt` is called with the number of each attempt before its output comes.
    UsageError when there is none, and none will come.
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
                    last_lines = None  # what comes now is all new
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
    """Attempts whose output is to be shown next: at first the last, later all that came since."""
    attempts = logged_attempts(directory, job)
    if attempt is not None:
        return [attempt] if log is None and attempt in attempts else []
    return attempts[-1:] if log is None else [number for number in attempts if number > log.attempt]


class _Watched:
    """How far a job, or one attempt at it, is. Looked at often, and known from time to time."""

    def __init__(self, stored: StoredRun, job: JobName, attempt: int | None) -> None:
        self.stored = stored  # as it was at the last look
        self._job = job
        self._attempt = attempt
        self._again_at = 0.0

    def is_over(self) -> bool:
        """Whether nothing more comes of it, as far as is known."""
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
        return f"job {job.name} has not started yet, so there is no output. With -f it is waited for."
    if status.status == "blocked":
        return f"job {job.name} did not run: it {status.reason}"
    if status.status == Status.CANCELLED:
        return f"job {job.name} was cancelled before it started: there is no output"
    return f"job {job.name} is {status.status}, and its output is gone"


def _seek_last_lines(descriptor: int, count: int) -> None:
    """Set the position so that so many lines follow, the last of which may have no end."""
    position = size = os.fstat(descriptor).st_size
    missing = count
    while position > 0:
        start = max(position - _BLOCK, 0)
        block = os.pread(descriptor, position - start, start)
        # The end of the last line begins no other.
        end = len(block) - 1 if position == size else len(block)
        while missing > 0 and (line_end := block.rfind(b"\n", 0, end)) >= 0:
            missing -= 1
            end = line_end
        if missing == 0:
            os.lseek(descriptor, start + end + 1 if count else size, os.SEEK_SET)
            return
        position = start
