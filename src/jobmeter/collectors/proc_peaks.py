"""The processes that held the memory when the job had most of it.

Whenever memory is at a new high, the largest processes are noted, which costs some microseconds. Their kinds of memory
are read too, if an allowance covers that. The last high is the job's peak.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from heapq import nlargest

from jobmeter.collectors.allowance import Allowance
from jobmeter.kernel import procfs
from jobmeter.kernel.cgroup.group import Group
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import MemoryKinds
from jobmeter.kernel.tree import Process
from jobmeter.light_typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobmeter.record.types import PeakEntry, PeakProcess

_HIGHER = 1.01
"""A new high is at least the last one times this."""
_LOWER = 0.97
_APART = 1.5
"""Of the highs that are less than this many times an earlier high, only the last is kept."""
_MOST_HIGHS = 4
_MOST_PROCESSES = 8
_LEAST = 1 << 20
"""Bytes. Below this every start of a program would be a high."""
_SECONDS_PER_PROCESS = 30e-6
_PAUSE_PER_PROCESS = 0.5e-3
"""Seconds to pause after a high. A job of many processes begins by starting them, and each would be another high."""


class _Holder(NamedTuple):
    pid: int
    cmd: str
    amount: float
    kinds: MemoryKinds | None


class _High(NamedTuple):
    monotonic: float
    amount: int  # what the job held, by its cgroup where it has one
    kinds: dict[str, int]
    holders: list[_Holder]
    others: int  # processes that are not among the holders
    others_amount: float


class PeakTrace:
    """The highs of one job."""

    def __init__(
        self, machine: Machine, group: Group | None, cmd: Callable[[Process], str], size: Callable[[Process], int]
    ) -> None:
        """`size` returns the memory of a process, with only its share of shared memory if that is known."""
        self._machine = machine
        self._group = group
        self._cmd = cmd
        self._size = size
        self._highs: list[_High] = []
        self._highest = 0
        self._not_before = 0.0
        self._looked_at = 0.0  # the sum of sizes when the holders were last examined
        self._next = float(_LEAST)
        self._allowance = Allowance(share=0.005, at_first=0.005)

    def update(self, holding: list[Process], size: int) -> None:
        """Take the processes that hold memory now; `size` is the sum of their sizes."""
        if size < self._next:
            # Sums count shared memory in each process: after a fall, a lower sum than before may be a new high.
            if size < _LOWER * self._looked_at:
                self._looked_at, self._next = size, max(size * _HIGHER, _LEAST)
            return
        now = time.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + _PAUSE_PER_PROCESS * len(holding)
        self._looked_at, self._next = size, size * _HIGHER
        amount, kinds = self._of_group()
        if (amount or size) < _HIGHER * self._highest:
            return
        self._highest = amount or size
        high = self._explain(holding, size, amount, kinds)
        if len(self._highs) > 1 and high.amount < _APART * self._highs[-2].amount:
            self._highs.pop()
        self._highs.append(high)
        del self._highs[:-_MOST_HIGHS]

    def _explain(self, holding: list[Process], size: int, amount: int, kinds: dict[str, int]) -> _High:
        """The high, with its holders; `amount` and `kinds` are those of the job's cgroup, 0 and empty without one."""
        largest = nlargest(_MOST_PROCESSES, holding, key=lambda process: process.stat.rss)
        with_kinds = self._allowance.covers(len(largest) * _SECONDS_PER_PROCESS)
        with self._allowance:
            holders = [self._holder(process, with_kinds=with_kinds) for process in largest]
        others, named = len(holding) - len(largest), sum(holder.amount for holder in holders)
        rest = max(size - named, 0.0) if others else 0.0
        total = named + rest
        if not amount:
            return _High(time.monotonic(), round(total), _added(holders, others), holders, others, rest)
        # Sizes that add up to more than the amount count shared memory in each process: they are scaled down.
        part = min(amount / total, 1.0) if total else 1.0
        holders = [holder._replace(amount=holder.amount * part) for holder in holders]
        return _High(time.monotonic(), amount, kinds, holders, others, rest * part)

    def _of_group(self) -> tuple[int, dict[str, int]]:
        """What the job's cgroup holds now, in total and by kind; 0 and empty without one."""
        memory = self._group.memory() if self._group is not None else None
        if memory is None:
            return 0, {}
        held = max(memory.current - memory.file, 0)
        rest = max(held - memory.anon, 0)
        return held, {"anonymous_bytes": memory.anon, "file_bytes": memory.file, "kernel_bytes": rest}

    def _holder(self, process: Process, *, with_kinds: bool) -> _Holder:
        pid, size, kinds = process.identity.pid, float(self._size(process)), None
        try:
            kinds = procfs.read_resident_kinds(self._machine, pid) if with_kinds else None
        except (OSError, ValueError):
            pass  # it has just ended
        return _Holder(pid, self._cmd(process), size, kinds)

    def entries(self, started: float) -> list[PeakEntry]:
        """The highs for the record, the job's peak last, with times since `started`."""
        return [_entry(high, started) for high in self._highs]


def _added(holders: list[_Holder], others: int) -> dict[str, int]:
    """The memory of all processes by kind; empty if the kinds are not known for each process."""
    kinds = [holder.kinds for holder in holders if holder.kinds is not None]
    if others or len(kinds) < len(holders):
        return {}
    return _named(MemoryKinds(*[sum(column) for column in zip(*kinds)]))


def _named(kinds: MemoryKinds) -> dict[str, int]:
    return {"anonymous_bytes": kinds.anonymous, "file_bytes": kinds.file, "shared_bytes": kinds.shared}


def _entry(high: _High, started: float) -> PeakEntry:
    processes: list[PeakProcess] = []
    for holder in sorted(high.holders, key=lambda holder: -holder.amount):
        process: PeakProcess = {"pid": holder.pid, "cmd": holder.cmd, "bytes": round(holder.amount)}
        if holder.kinds is not None:
            process.update(_named(holder.kinds))  # type: ignore[typeddict-item]
        processes.append(process)
    if high.others:
        processes.append({"processes": high.others, "cmd": f"{high.others} more", "bytes": round(high.others_amount)})
    seconds = round(max(high.monotonic - started, 0.0), 3)
    entry: PeakEntry = {"seconds": seconds, "bytes": high.amount, "processes": processes}
    entry.update(high.kinds)  # type: ignore[typeddict-item]
    return entry
