"""A process that already runs, with its descendants: measured from now until all of them end, or `stop`."""

from __future__ import annotations

import os
import threading

from jobmeter.collectors.contract import Target
from jobmeter.errors import UsageError
from jobmeter.kernel.machine import Machine, read_bytes
from jobmeter.kernel.procfs import read_stat
from jobmeter.launch.signals import SignalTargets
from jobmeter.model import Outcome, Status
from jobmeter.session.measuring import JobEnd, Measuring, OpenJob

_GAP = 0.2
"""Seconds between two checks for running processes: the end of a process that is not our child is not reported."""


class RunningProcess:
    """A running process with its descendants, which are only observed. See `session.contract.JobControl`."""

    in_container = False

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._machine: Machine
        self._processes: SignalTargets | None = None
        self._stopped = threading.Event()
        self._left_running = 0

    def prepare(self, measuring: Measuring) -> None:
        """Raises UsageError if the process does not exist, cannot be read or has ended."""
        self._machine = measuring.machine
        try:
            stat = read_stat(self._machine, self._pid)
        except (OSError, ValueError):
            raise UsageError(f"there is no process {self._pid}. `ps -e` lists all processes.") from None
        if stat.state in "ZX":
            raise UsageError(f"process {self._pid} has already ended (its parent has not noticed yet)")

    def open(self) -> OpenJob:
        command = self._command()
        self._processes = SignalTargets(self._machine, self._pid, with_root=True)
        target = Target(root=self._pid, main=self._pid, root_is_job=True, machine=self._machine)
        return OpenJob(target, command, self._directory())

    def run(self) -> None:
        """Do nothing: the process already runs."""

    def wait(self) -> None:
        while self._running() and not self._stopped.wait(_GAP):
            pass

    def stop(self, *, at_once: bool) -> None:
        """Stop measuring; the process keeps running."""
        self._stopped.set()

    def end(self) -> JobEnd:
        self._left_running = len(self._running())
        return JobEnd(left_running=self._left_running)

    def outcome(self) -> Outcome:
        # The exit code is unknown: it is not our child.
        return Outcome(Status.DETACHED if self._left_running else Status.COMPLETED)

    def close(self) -> None:
        if self._processes is not None:
            self._processes.close()

    def _running(self) -> list[int]:
        assert self._processes is not None, "it was not started"
        return self._processes.running()

    def _command(self) -> list[str]:
        raw = read_bytes(f"{self._machine.proc}/{self._pid}/cmdline")
        words = [os.fsdecode(word) for word in raw.rstrip(b"\0").split(b"\0")]
        return words if words != [""] else [f"[{os.fsdecode(read_stat(self._machine, self._pid).comm)}]"]

    def _directory(self) -> str:
        try:
            return os.readlink(f"{self._machine.proc}/{self._pid}/cwd")
        except OSError:
            return ""  # another user's process
