"""What the processes below one root use: CPUs, memory and disks, together and for each child of the root."""

from __future__ import annotations

import time
from typing import NamedTuple

from jobmeter.kernel import procfs
from jobmeter.kernel.ledger import Account, Ledger
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.kernel.tree import Process, Tree

_KEEP_OPEN = 100
"""Files of /proc held open: the process that samples is a worker of Ray, which needs descriptors for itself."""
_BUSY = 0.02
"""The waiting times of all threads are read if a process uses at least this many CPUs, or is ready to run."""


class BranchUse(NamedTuple):
    """One child of the root with all its descendants, since the previous reading."""

    pid: int
    title: str  # its command line
    values: dict[str, float]


class ProcessUse(NamedTuple):
    """All processes below the root, and the root itself."""

    values: dict[str, float]
    branches: list[BranchUse]


class ProcessesBelow:
    """Reads the processes repeatedly. Rates are since the previous reading; the first reading has none."""

    def __init__(self, machine: Machine, root: int) -> None:
        """Raises OSError if there is no such process."""
        self._machine = machine
        self._tree = Tree(machine, root, keep_open=_KEEP_OPEN)
        self._ledger = Ledger()
        self._branch_ledgers: dict[Identity, Ledger] = {}
        self._totals: dict[Identity | None, tuple[int, ...]] = {}
        self._accounts: dict[Identity, Account] = {}
        self._anonymous: dict[Identity, tuple[int, int]] = {}  # resident size, and the anonymous memory in it
        self._ticks: dict[Identity, int] = {}  # CPU time in clock ticks
        # Nanoseconds of waiting for a CPU: of the first thread, and of all threads of processes that ran lately.
        self._first_delays: dict[Identity, int] = {}
        self._delays: dict[Identity, int] = {}
        self._at = 0.0

    def read(self) -> ProcessUse:
        now, before = time.monotonic(), self._at
        self._tree.refresh()
        self._at = now
        span = now - before if before else 0.0
        present = [each for each in (self._tree.root, *self._tree.members.values()) if each.present]
        self._accounts = {process.identity: self._account(process) for process in present}
        branches = self._branches(present)
        waits = {process.identity: self._waited(process, span) for process in present}
        values = self._values(None, present, self._ledger, span, waits)
        used = []
        for root, processes in branches.items():
            ledger = self._branch_ledgers.setdefault(root, Ledger())
            title = self._title(processes[0])
            if title:
                used.append(BranchUse(root.pid, title, self._values(root, processes, ledger, span, waits)))
        self._forget(set(branches))
        return ProcessUse(values, used)

    def _values(
        self,
        key: Identity | None,
        processes: list[Process],
        ledger: Ledger,
        span: float,
        waits: dict[Identity, float | None],
    ) -> dict[str, float]:
        totals = ledger.update({process.identity: self._accounts[process.identity] for process in processes})
        before = self._totals.get(key)
        self._totals[key] = totals
        values: dict[str, float] = {
            "used_memory_bytes": float(sum(map(self._memory, processes))),
            "processes": float(sum(process.alive for process in processes)),
        }
        # A branch that began since the last reading has used its whole totals since then.
        if span > 0 and totals and (before is not None or key is not None):
            ticks, read, written = (now - was for now, was in zip(totals, before or (0, 0, 0)))
            values["used_cpus"] = ticks / TICKS_PER_SECOND / span
            values["disk_read_bytes_per_second"] = read / span
            values["disk_write_bytes_per_second"] = written / span
            waited = [waits[process.identity] for process in processes]
            if None not in waited:
                values["waited_cpus"] = sum(filter(None, waited))
        return values

    def _branches(self, present: list[Process]) -> dict[Identity, list[Process]]:
        """Each child of the root with its descendants, itself first."""
        by_pid = {process.identity.pid: process for process in present}
        root = self._tree.root.identity.pid
        branches: dict[Identity, list[Process]] = {}
        heads: dict[int, Identity] = {}
        for process in present:  # parents come first
            if process.identity.pid == root:
                continue
            parent = process.stat.ppid
            if parent == root or (parent not in heads and parent not in by_pid):
                heads[process.identity.pid] = process.identity
            else:
                heads[process.identity.pid] = heads.get(parent, process.identity)
            branches.setdefault(heads[process.identity.pid], []).append(process)
        return branches

    def _account(self, process: Process) -> Account:
        stat = process.stat
        ticks = stat.user + stat.system + stat.children_user + stat.children_system
        faults = stat.minor_faults + stat.children_minor_faults
        before = self._accounts.get(process.identity)
        if before is not None and before.used[0] == ticks and before.parent == stat.ppid:
            return before  # it did not run
        try:
            io = procfs.read_io(self._machine, process.identity.pid)
            moved = (io.read_bytes, io.write_bytes)
        except (OSError, ValueError):
            # It belongs to another user, or has ended.
            moved = (0, 0) if before is None else (before.used[1], before.used[2])
        return Account(stat.ppid, faults, stat.children_minor_faults, (ticks, *moved))

    def _memory(self, process: Process) -> int:
        """Anonymous memory of a process. What several processes map, as libraries and the object store, is left out."""
        if not process.holds_memory:
            return 0
        last_reading = self._anonymous.get(process.identity)
        if last_reading is not None and last_reading[0] == process.stat.rss:
            return last_reading[1]
        try:
            own = procfs.read_resident_kinds(self._machine, process.identity.pid).anonymous
        except (OSError, ValueError):
            return 0  # it has ended
        self._anonymous[process.identity] = (process.stat.rss, own)
        return own

    def _waited(self, process: Process, span: float) -> float | None:
        """Seconds per second that the process waited for a CPU, at least; None if the kernel does not count it.

        For every process the first thread is read; for those that ran, or are ready to run, all threads.
        """
        identity, ticks = process.identity, process.stat.user + process.stat.system
        ran = ticks - self._ticks.get(identity, 0)
        self._ticks[identity] = ticks
        all_before, first_before = self._delays.pop(identity, None), self._first_delays.get(identity, 0)
        if not process.alive:
            return 0.0
        try:
            first = self._first_delays[identity] = procfs.read_run_delay(self._machine, identity.pid, identity.pid)
            waited = first - first_before
            # A process that is ready to run and gets no CPU at all is not idle.
            if process.stat.state == "R" or ran >= max(_BUSY * span * TICKS_PER_SECOND, 1):
                threads = procfs.thread_ids(self._machine, identity.pid)
                every = self._delays[identity] = sum(
                    procfs.read_run_delay(self._machine, identity.pid, thread) for thread in threads
                )
                waited = waited if all_before is None else every - all_before
        except OSError:
            return 0.0 if procfs.is_ending(self._machine, identity.pid) else None
        except ValueError:
            return None
        return max(waited, 0) / 1e9 / span if span > 0 else 0.0

    def _title(self, process: Process) -> str:
        try:
            return procfs.read_cmdline(self._machine, process.identity.pid, process.stat.comm)
        except OSError:
            return ""

    def _forget(self, branches: set[Identity]) -> None:
        """Drop what is known about processes that have ended."""
        ended = self._ticks.keys() - self._accounts.keys()
        for identity in ended:
            for by_identity in (self._ticks, self._first_delays, self._delays, self._anonymous):
                by_identity.pop(identity, None)
        for identity in self._branch_ledgers.keys() - branches:
            del self._branch_ledgers[identity]
            self._totals.pop(identity, None)

    def close(self) -> None:
        self._tree.close()
