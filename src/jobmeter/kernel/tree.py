"""The processes of a job: all descendants of one root, followed over time.

Under a shepherd no process escapes: the shepherd is the job's subreaper, so a process whose
parent ended is again a descendant of the root. Processes are listed parents first.
"""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine, read_bytes
from jobmeter.kernel.procfs import STAT_BYTES, Identity, Stat, last_pid, parse_stat

_KEEP_OPEN = min(600, os.sysconf("SC_OPEN_MAX") // 2)
"""The most files of /proc kept open, by all trees together. Most systems allow 1024, of which the caller needs some."""


_PASSES = 4
"""The most passes over a tree per refresh: one more is made while its processes end."""


class Process:
    """One process and its open stat file: an open descriptor never shows a later process with the same pid."""

    __slots__ = ("_descriptor", "_line", "alive", "holds_memory", "identity", "present", "stat")

    def __init__(self, identity: Identity, stat: Stat, descriptor: int = -1, line: bytes | None = None) -> None:
        """`line` was read from `descriptor`, the open stat file; while it is open, reading it again is one call."""
        self.identity = identity
        self.present = True
        self._descriptor = descriptor
        self._line = line
        self.take(stat)

    def take(self, stat: Stat) -> None:
        """Take a new reading of the stat file."""
        self.stat = stat  # stays the same object while the process does nothing
        self.alive = stat.state not in "ZX"  # whether it can still run: zombies cannot
        # A process that is exiting frees its memory piece by piece: what is left is not a level of the job.
        self.holds_memory = self.alive and not stat.exiting

    def reread(self, machine: Machine) -> bool:
        """Read `stat` again; False when the process has ended."""
        try:
            if self._descriptor >= 0:
                line = os.pread(self._descriptor, STAT_BYTES, 0)
            else:
                line = read_bytes(f"{machine.proc}/{self.identity.pid}/stat")
            if line == self._line:
                return self.present
            stat = parse_stat(line)
        except (OSError, ValueError):
            self._line, self.present = None, False
            return False
        self._line = line
        self.present = stat.start == self.identity.start
        if self.present:
            self.take(stat)
        return self.present

    @property
    def kept_open(self) -> bool:
        return self._descriptor >= 0

    def close(self) -> bool:
        """Close the stat file; False if it was closed before."""
        if not self.kept_open:
            return False
        os.close(self._descriptor)
        self._descriptor = -1
        return True


def open_process(machine: Machine, pid: int, *, keep_open: bool) -> Process:
    """Read a process for the first time. Raises OSError if it has ended."""
    descriptor = os.open(f"{machine.proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        stat = parse_stat(line := os.pread(descriptor, STAT_BYTES, 0))
        process = Process(Identity(pid, stat.start), stat, descriptor, line)
    except BaseException:
        os.close(descriptor)
        raise
    if not keep_open:
        process.close()
    return process


class Tree:
    """The descendants of `root`; the root itself is not among `members`."""

    _kept_open = 0  # files of all trees of this process

    def __init__(
        self,
        machine: Machine,
        root: int,
        only_child: int | None = None,
        *,
        childless: bool = False,
        keep_open: int = _KEEP_OPEN,
    ) -> None:
        """Follow the descendants of `root`, with up to `keep_open` of their stat files held open.

        `only_child`, if given, is its only descendant so far; with `childless`, it has none so far. In both
        cases, the processes that already run on the machine need not be read.
        """
        self._machine = machine
        self._keep_open = keep_open
        self._last_pid = -1
        self._visited: set[int] = set()
        self.members: dict[int, Process] = {}
        self.vanished: list[Process] = []
        self.root = open_process(machine, root, keep_open=keep_open > 0)
        if only_child is not None or childless:
            self._visited = self._present()
        if only_child is not None:
            self._adopt(self._open(only_child))

    def refresh(self, *, find_new: bool = True) -> None:
        """Read every member again and find new ones; members that ended are in `vanished` until the next refresh.

        To find new ones, it reads every process that was forked on the whole machine since the last refresh.
        """
        self.vanished = []
        # A process that is reaped after its parent was read, but before it is read itself, is in neither reading:
        # then all are read again.
        for _ in range(_PASSES):
            if not self._reread():
                break
        if not find_new:
            return
        newest = last_pid(self._machine)
        if newest != self._last_pid or self.vanished:
            if newest < self._last_pid:
                self._visited = set(self.members)  # pids wrapped around: a visited pid may belong to the job now
            self._last_pid = newest
            self._find_new()

    def _reread(self) -> bool:
        """Read every member, parents first; True when some had ended."""
        before = len(self.vanished)
        self.root.reread(self._machine)
        for pid, process in list(self.members.items()):
            if not process.reread(self._machine):
                self._remove(pid)
        return len(self.vanished) > before

    def _find_new(self) -> None:
        present = self._present()
        strangers: dict[int, Process] = {}
        for pid in sorted(present - self._visited):
            try:
                process = self._open(pid)
            except (OSError, ValueError):
                present.discard(pid)
                continue
            if self._is_descendant(process):
                self._adopt(process)
            else:
                process.close()
                strangers[pid] = process
        self._visited = present
        # If pids wrapped around, a child may have a lower pid than its parent.
        grown = True
        while grown:
            grown = False
            for pid, process in list(strangers.items()):
                if self._is_descendant(process):
                    self._adopt(strangers.pop(pid))
                    grown = True
        # A process whose parent was not listed yet is checked again next time.
        orphans = {pid for pid, process in strangers.items() if process.stat.ppid and process.stat.ppid not in present}
        self._visited -= orphans

    def _present(self) -> set[int]:
        return {int(name) for name in os.listdir(self._machine.proc) if name.isdigit()}

    def _open(self, pid: int) -> Process:
        return open_process(self._machine, pid, keep_open=Tree._kept_open < self._keep_open)

    def _is_descendant(self, process: Process) -> bool:
        parent = process.stat.ppid
        return parent in self.members or parent == self.root.identity.pid

    def _adopt(self, process: Process) -> None:
        Tree._kept_open += process.kept_open
        self.members[process.identity.pid] = process

    def _remove(self, pid: int) -> None:
        process = self.members.pop(pid)
        # The pid may belong to another process by the next scan.
        self._visited.discard(pid)
        Tree._kept_open -= process.close()
        self.vanished.append(process)

    def running(self, *, with_root: bool = False) -> list[Process]:
        """Members that can still run, as of the last refresh; with `with_root`, the root is first, if it can run."""
        rooted = [self.root] if with_root and self.root.present else []
        return [process for process in (*rooted, *self.members.values()) if process.alive]

    def running_pids(self, *, with_root: bool) -> list[int]:
        return [process.identity.pid for process in self.running(with_root=with_root)]

    def close(self) -> None:
        self.root.close()
        for process in self.members.values():
            Tree._kept_open -= process.close()
        self.members.clear()
