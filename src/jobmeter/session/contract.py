"""What a session needs of a job, whatever kind it is: a command, a process, a container, a piece of a program."""

from __future__ import annotations

from typing import Protocol

from jobmeter.model import Outcome
from jobmeter.session.measuring import JobEnd, Measuring, OpenJob


class JobControl(Protocol):
    """Starts or finds one job, waits for it and ends it. `session.session.Session` does the rest.

    The session calls `prepare`, `open`, `run`, `wait`, `end`, `outcome` and `close` once each, in this order, from one
    thread (`wait` again after a `stop` that an exception caused). `stop` may be called from any thread while it runs.
    """

    in_container: bool  # its container runtime has figures of it

    def prepare(self, measuring: Measuring) -> None:
        """Check what can be checked, and fetch what takes long. JobmeterError leaves nothing to undo."""
        ...

    def open(self) -> OpenJob:
        """Start the job as far as it can be held, or find it. On an exception `close` follows."""
        ...

    def run(self) -> None:
        """Measuring is set up: let the job run, and follow it. On an exception `close` follows."""
        ...

    def wait(self) -> None:
        """Return when the job has ended, or was stopped. JobmeterError when it never began: then there is no record."""
        ...

    def stop(self, *, at_once: bool) -> None:
        """Make `wait` return: end a job that was launched here; leave one that was already running.

        `at_once` does without SIGTERM and the time to end by itself.
        """
        ...

    def end(self) -> JobEnd:
        """What is known once `wait` has returned."""
        ...

    def outcome(self) -> Outcome:
        """How the job ended; called after the last readings."""
        ...

    def close(self) -> None:
        """Release everything and remove what was made for the job, however far it came."""
        ...
