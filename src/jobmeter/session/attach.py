"""A run of something that already runs: measured from now until it ends, or one stops."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobmeter.collectors.contract import Ending, Target
from jobmeter.errors import UsageError
from jobmeter.kernel.machine import THIS_MACHINE, Machine, read_bytes
from jobmeter.kernel.procfs import read_stat
from jobmeter.launch.signals import Herd
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample
from jobmeter.model import Outcome, Requirement
from jobmeter.session.measuring import USUAL, MeasureOptions, Measuring, ignore

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_LOOK = 0.2
"""Seconds between looks at whether the tree still lives: others' children send us no word of their end."""


class Attachment:
    """Measures the tree below a process, the process included. Figures count from `start` on."""

    def __init__(
        self,
        pid: int,
        options: MeasureOptions = USUAL,
        *,
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
    ) -> None:
        """UsageError when there is no such process, or it may not be looked at."""
        try:
            stat = read_stat(machine, pid)
        except (OSError, ValueError):
            raise UsageError(f"there is no process {pid}. `ps -e` lists those there are.") from None
        if stat.state in "ZX":
            raise UsageError(f"process {pid} has already ended (its parent has not noticed yet)")
        self._pid = pid
        self._machine = machine
        self._measuring = Measuring(options, meter=meter, machine=machine, warn=warn, on_sample=on_sample)
        self._stopped = threading.Event()

    @property
    def id(self) -> str:
        return self._measuring.id

    @property
    def journal_path(self) -> str | None:
        return self._measuring.journal.path if self._measuring.journal is not None else None

    def start(self) -> None:
        """Begin to measure. UsageError when a key that was requested by name cannot be measured of it."""
        command = self._command()
        self._herd = Herd(self._machine, self._pid, with_root=True)
        target = Target(root=self._pid, main=self._pid, root_is_job=True, machine=self._machine)
        try:
            self._measuring.begin(target, command, self._directory(), Requirement())
        except BaseException:
            self._herd.close()
            raise
        self._measuring.go()
        self._measuring.sync()

    def wait(self) -> Record:
        """Wait for the end of the whole tree, or for `stop`, and return the run record."""
        while self._herd.running() and not self._stopped.wait(_LOOK):
            pass
        left = len(self._herd.running())
        # Its exit code is told to its parent alone.
        result = Outcome("detached" if left else "completed")
        record, _ = self._measuring.conclude(Ending(), lambda: result, left)
        self._measuring.close()
        self._herd.close()
        return record

    def stop(self) -> None:
        """Measure no longer; the process goes on."""
        self._stopped.set()

    def _command(self) -> list[str]:
        raw = read_bytes(f"{self._machine.proc}/{self._pid}/cmdline")
        words = [os.fsdecode(word) for word in raw.rstrip(b"\0").split(b"\0")]
        return words if words != [""] else [f"[{read_stat(self._machine, self._pid).comm.decode(errors='replace')}]"]

    def _directory(self) -> str:
        try:
            return os.readlink(f"{self._machine.proc}/{self._pid}/cwd")
        except OSError:
            return ""  # another user's process
