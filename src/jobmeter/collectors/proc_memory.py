"""Memory of processes beyond their resident size, read only where it can have changed.

`status` costs 25 µs a process. `smaps_rollup` costs 10 to 14 ms per GiB and holds
the job's memory lock meanwhile, so both have an allowance, and page faults, which
`stat` counts, show when a reading can have changed.
"""

from __future__ import annotations

from jobmeter.collectors.allowance import Allowance
from jobmeter.kernel import procfs
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.kernel.tree import Process

_SMAPS_SECONDS_PER_BYTE = 14e-3 / 2**30
_SMAPS_SECONDS_PER_PROCESS = 40e-6


class HighMarks:
    """The highest VmHWM of any process."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._highest: int | None = None
        self._faults: dict[Identity, int] = {}
        self._allowance = Allowance(share=0.01, at_first=0.02)

    def update(self, alive: list[Process]) -> int | None:
        stale = [p for p in alive if self._faults.get(p.identity) != p.stat.minor_faults]
        stale.sort(key=lambda process: process.stat.rss, reverse=True)
        for process in stale:
            if not self._allowance.covers():
                break
            with self._allowance:
                self._read(process)
        if len(self._faults) > 2 * len(alive):
            self._faults = {p.identity: self._faults[p.identity] for p in alive if p.identity in self._faults}
        return self._highest

    def _read(self, process: Process) -> None:
        try:
            hwm = procfs.read_status(self._machine, process.identity.pid).hwm
        except OSError:
            return
        self._faults[process.identity] = process.stat.minor_faults
        if hwm is not None and hwm > (self._highest or 0):
            self._highest = hwm


class Shares:
    """PSS and USS of every process at one moment, and an estimate of their sum between such readings."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._allowance = Allowance(share=0.02, at_first=0.06)
        self._read_at = -1
        self._largest_read = self._largest_skipped = 0
        self.behind = False  # something changed and could not be read yet
        self._shares: list[procfs.SmapsRollup] = []
        self._anchors: dict[Identity, tuple[int, int]] = {}  # PSS, and the resident size it was read at

    def update(self, holding: list[Process]) -> list[procfs.SmapsRollup]:
        """The present shares; empty when they changed and reading them would cost too much."""
        # Every page that is added, or copied because it was shared, is a fault; freeing one is not.
        mark = hash(tuple((process.identity, process.stat.minor_faults, process.stat.rss) for process in holding))
        if mark == self._read_at:
            return self._shares
        size = sum(process.stat.rss for process in holding)
        self.behind = not self._allowance.covers(
            size * _SMAPS_SECONDS_PER_BYTE + len(holding) * _SMAPS_SECONDS_PER_PROCESS
        )
        if self.behind:
            self._largest_skipped = max(self._largest_skipped, size)
            return []
        self._largest_read = max(self._largest_read, size)
        with self._allowance:
            read = [(process, self._read(process)) for process in holding]
        self._shares = [share for _, share in read if share is not None]
        # For a process that may not be read, the resident size is used.
        self._anchors = {p.identity: (p.stat.rss if share is None else share.pss, p.stat.rss) for p, share in read}
        self._read_at = mark
        return self._shares

    def estimate(self, holding: list[Process]) -> int | None:
        """PSS as last read, moved by what the resident sizes changed since; None before the first reading.

        A process that is new since then was forked, and shares all it has, until it changes.
        """
        if not self._anchors:
            return None
        total = 0
        for process in holding:
            pss, rss = self._anchors.setdefault(process.identity, (0, process.stat.rss))
            total += max(pss + process.stat.rss - rss, 0)
        return total

    @property
    def were_read(self) -> bool:
        return bool(self._anchors)

    @property
    def missed_the_top(self) -> bool:
        """Whether the processes were larger at a moment that was too costly to read."""
        return self._largest_skipped > 1.05 * self._largest_read

    def _read(self, process: Process) -> procfs.SmapsRollup | None:
        try:
            return procfs.read_smaps_rollup(self._machine, process.identity.pid)
        except OSError:
            return None  # another user's process, or it has ended
