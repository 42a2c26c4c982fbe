"""The usage of the processes of a tree: CPU time, I/O, page faults. Taken per process first, then summed."""

from __future__ import annotations

import os

from jobmeter.collectors.proc_escapes import Escapes
from jobmeter.kernel import procfs
from jobmeter.kernel.ledger import Account, Ledger
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.kernel.tree import Process

_NO_IO = (0, 0, 0, 0)


class Counters:
    """The counters of a tree since this object was made; ended processes stay in them."""

    def __init__(self, machine: Machine, processes: list[Process], escapes: Escapes, *, with_io: bool) -> None:
        self._machine = machine
        self._escapes = escapes
        self._with_io = with_io
        self._privileged = os.geteuid() == 0
        self._accounts: dict[Identity, Account] = {}
        self._ledger = Ledger()
        self.update(processes)
        # Counted from here: a shepherd has already used a little, a running job maybe much.
        self._base = self._totals

    def update(self, processes: list[Process]) -> None:
        """Read the counters of the present processes."""
        self._accounts = {process.identity: self._account(process) for process in processes}
        self._totals = self._ledger.update(self._accounts)

    @property
    def cpu_ticks(self) -> int:
        return self._totals[0] - self._base[0]

    @property
    def cpu_seconds(self) -> float:
        return self.cpu_ticks / TICKS_PER_SECOND

    @property
    def io(self) -> list[int]:
        """Bytes read and written, calls of read and of write."""
        return [now - before for now, before in zip(self._totals[1:-1], self._base[1:-1])]

    @property
    def major_faults(self) -> int:
        return self._totals[-1] - self._base[-1]

    def outran(self, cpu_nanoseconds: int) -> bool:
        """Whether the tree used more CPU than that, beyond the error of ticks, or has processes that others miss."""
        if self._escapes.left_cpu_group or self._escapes.has_other_user(self._accounts.keys()):
            return True
        return self.cpu_seconds > cpu_nanoseconds / 1e9 * 1.05 + 0.05

    def _account(self, process: Process) -> Account:
        stat = process.stat
        ticks = stat.user + stat.system + stat.children_user + stat.children_system
        faults = stat.minor_faults + stat.children_minor_faults
        before = self._accounts.get(process.identity)
        if before is not None and before.faults == faults and before.used[0] == ticks:
            # It hardly ran: what little I/O it did will be in the next reading, or in the one at its end.
            return before if before.parent == stat.ppid else before._replace(parent=stat.ppid)
        # For an ordinary user, `io` of a new process shows whether the process is another user's.
        due = ticks or (before is None and not self._privileged)
        io = self._read_io(process) if self._with_io and due else _NO_IO
        major = stat.major_faults + stat.children_major_faults
        return Account(stat.ppid, faults, stat.children_minor_faults, (ticks, *io, major))

    def _read_io(self, process: Process) -> tuple[int, ...]:
        try:
            return procfs.read_io(self._machine, process.identity.pid)
        except PermissionError:
            # Another user's process, or one that is ending.
            if not procfs.is_ending(self._machine, process.identity.pid):
                self._escapes.add_other_user(process)
            return _NO_IO
        except (OSError, ValueError):
            return _NO_IO  # it has ended
