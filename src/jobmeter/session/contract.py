"""The interface between a session and a job of any kind: a command, a process, a container, a piece of a program."""

from __future__ import annotations

from typing import Protocol

from jobmeter.model import Outcome
from jobmeter.session.measuring import JobEnd, Measuring, OpenJob


class JobControl(Protocol):
    """Starts or finds one job, waits for it and ends it. `session.session.Session` does the rest.

    The session calls `prepare`, `open`, `run`, `wait`, `end`, `outcome` and `close` once each, in this order, from one
    thread (`wait` again if an exception made it call `stop`). `stop` may be called from any thread while the job runs.
    """

    in_container: bool  # the job is a container: its container runtime reports figures too

    def prepare(self, measuring: Measuring) -> None:
        """Check what can be checked, and fetch what takes long. After a JobmeterError, there is nothing to undo."""
        ...

    def open(self) -> OpenJob:
        """Start the job, held before its exec if possible, or find a running one. `close` follows an exception."""
        ...

    def run(self) -> None:
        """Let the job run, and follow it: the measuring is set up. `close` follows an exception."""
        ...

    def wait(self) -> None:
        """Return when the job has ended or was stopped. Raises JobmeterError if it never began: it has no record."""
        ...

    def stop(self, *, at_once: bool) -> None:
        """End a job that was launched here; let one that already ran keep running. In both cases `wait` returns.

        `at_once`: send SIGKILL right away, without SIGTERM and a grace period.
        """
        ...

    def end(self) -> JobEnd:
        """Return what is known about the end of the job. Called after `wait` has returned."""
        ...

    def outcome(self) -> Outcome:
        """How the job ended; called after the last readings."""
        ...

    def close(self) -> None:
        """Release everything and remove what was made for the job, also after a start that failed halfway."""
        ...
