"""Memory of processes beyond their resident size, read only where it can have changed.

`status` costs 25 µs per process. `smaps_rollup` costs 10 to 14 ms per GiB, and holds the
job's memory lock during that time. So both have an allowance. Page faults, which
`stat` counts, show when a reading can have changed.
"""

from __future__ import annotations

import time
from contextlib import suppress

from jobmeter.collectors.allowance import Allowance
from jobmeter.kernel import procfs
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, ProcessStatus
from jobmeter.kernel.tree import Process

_SMAPS_SECONDS_PER_BYTE = 14e-3 / 2**30
_SMAPS_SECONDS_PER_PROCESS = 40e-6
_PAUSE = 20
"""The pause after a reading, in multiples of the part of its cost that depends on the number of processes: a job of
many processes begins by starting them."""
_MOST_INFLATED = 0.01
"""The part of the sum by which a reading may be too high and is still used."""

_Reading = list[tuple[Process, "procfs.SmapsRollup | None"]]
"""What was read of each process; None if it could not be read."""


class Statuses:
    """`status` of each process, read again only when its memory can have changed since."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._read: dict[Identity, tuple[tuple[int, ...], ProcessStatus]] = {}
        self.highest_mark: int | None = None  # the highest VmHWM of all processes that were read

    def read(self, process: Process) -> ProcessStatus:
        """The status of a process; only its memory figures are current. Raises OSError if it has ended."""
        mark, last_reading = _memory_mark(process), self._read.get(process.identity)
        if last_reading is not None and last_reading[0] == mark:
            return last_reading[1]
        status = procfs.read_status(self._machine, process.identity.pid)
        self._read[process.identity] = mark, status
        if status.hwm is not None and status.hwm > (self.highest_mark or 0):
            self.highest_mark = status.hwm
        return status

    def stale(self, alive: list[Process]) -> list[Process]:
        """The processes whose status has to be read again."""
        if len(self._read) > 2 * len(alive):
            self._read = {p.identity: self._read[p.identity] for p in alive if p.identity in self._read}
        read = self._read
        return [
            p for p in alive if (last_reading := read.get(p.identity)) is None or last_reading[0] != _memory_mark(p)
        ]


def _memory_mark(process: Process) -> tuple[int, ...]:
    """A value that differs if the memory changed: new pages are faults, and swap shrinks the resident size."""
    stat = process.stat
    return stat.minor_faults, stat.major_faults, stat.rss, stat.vsize


class HighMarks:
    """The highest VmHWM of any process."""

    def __init__(self, statuses: Statuses) -> None:
        self._statuses = statuses
        self._allowance = Allowance(share=0.01, at_first=0.02)

    def update(self, alive: list[Process]) -> int | None:
        stale = self._statuses.stale(alive)
        stale.sort(key=lambda process: process.stat.rss, reverse=True)
        for process in stale:
            if not self._allowance.covers():
                break
            with self._allowance, suppress(OSError):  # it has ended
                self._statuses.read(process)
        return self._statuses.highest_mark


class Shares:
    """PSS and USS of every process at one moment, and an estimate of the sum of PSS between such readings."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._allowance = Allowance(share=0.02, at_first=0.06)
        self._read_at = -1
        self._not_before = 0.0
        self._largest_read = self._largest_skipped = 0
        self.is_stale = False  # something changed and could not be read yet
        self._shares: list[procfs.SmapsRollup] = []
        self._anchors: dict[Identity, tuple[int, int]] = {}  # PSS, and the resident size it was read at

    def update(self, holding: list[Process]) -> list[procfs.SmapsRollup]:
        """The present shares; empty when they changed and reading them would cost too much."""
        # Adding a page, or copying a shared one, is a page fault; freeing one is not, but changes the resident size.
        mark = hash(tuple((process.identity, process.stat.minor_faults, process.stat.rss) for process in holding))
        if mark == self._read_at:
            return self._shares
        size = sum(process.stat.rss for process in holding)
        now, of_processes = time.monotonic(), len(holding) * _SMAPS_SECONDS_PER_PROCESS
        affordable = self._allowance.covers(size * _SMAPS_SECONDS_PER_BYTE + of_processes)
        self.is_stale = now < self._not_before or not affordable
        if not self.is_stale:
            self._not_before = now + _PAUSE * of_processes
            with self._allowance:
                read = [(process, self._read(process)) for process in holding]
                self.is_stale = self._is_inflated(read)
        if self.is_stale:
            self._largest_skipped = max(self._largest_skipped, size)
            return []
        self._largest_read = max(self._largest_read, size)
        self._shares = [share for _, share in read if share is not None]
        # For a process that may not be read, the resident size is used.
        self._anchors = {p.identity: (p.stat.rss if share is None else share.pss, p.stat.rss) for p, share in read}
        self._read_at = mark
        return self._shares

    def estimate(self, holding: list[Process]) -> int | None:
        """The sum of PSS as last read, plus what resident sizes changed since; None before the first reading.

        A process that is new since then was forked: it shares all its pages, and adds nothing until its size changes.
        """
        if not self._anchors:
            return None
        total = 0
        for process in holding:
            pss, rss = self._anchors.setdefault(process.identity, (0, process.stat.rss))
            total += max(pss + process.stat.rss - rss, 0)
        return total

    def size(self, process: Process) -> int:
        """The same estimate for one process; before the first reading, its resident size."""
        now = process.stat.rss
        if not self._anchors:
            return now
        pss, rss = self._anchors.get(process.identity, (0, now))
        return max(pss + now - rss, 0)

    @property
    def were_read(self) -> bool:
        return bool(self._anchors)

    @property
    def may_have_missed_peak(self) -> bool:
        """Whether the processes were larger at a moment at which they could not be read."""
        return self._largest_skipped > 1.05 * self._largest_read

    def _is_inflated(self, read: _Reading) -> bool:
        """Whether the sum is too high: when a process ends after it was read, those read later have its share too."""
        counted_twice = sum(
            share.pss - share.uss
            for process, share in read[:-1]
            if share is not None and procfs.is_ending(self._machine, process.identity.pid)
        )
        return counted_twice > _MOST_INFLATED * sum(share.pss for _, share in read if share is not None)

    def _read(self, process: Process) -> procfs.SmapsRollup | None:
        try:
            return procfs.read_smaps_rollup(self._machine, process.identity.pid)
        except OSError:
            return None  # another user's process, or it has ended
