"""The processes of a job: all descendants of one root, followed over time.

Under a shepherd nothing escapes: it is the job's subreaper, so a process whose
parent died is again below the root. Processes are listed parents first.
"""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, Stat, last_pid, parse_stat, read_stat

_KEEP_OPEN = min(600, os.sysconf("SC_OPEN_MAX") // 2)
"""The most files of /proc held open, by all trees together; most systems allow 1024 and the caller needs some."""


_PASSES = 4
"""The most passes over a tree per refresh, while processes of it end."""


class Process:
    """One process and its open stat file: an open descriptor never shows a later process with the same pid."""

    __slots__ = ("_descriptor", "identity", "present", "stat")

    def __init__(self, identity: Identity, stat: Stat) -> None:
        self.identity = identity
        self.stat = stat
        self.present = True
        self._descriptor = -1

    def keep_open(self, machine: Machine) -> bool:
        """Keep the stat file open, so that reading it again is one call; False when that is not possible."""
        try:
            self._descriptor = os.open(f"{machine.proc}/{self.identity.pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        return True

    def reread(self, machine: Machine) -> bool:
        """Read `stat` again; False when the process has ended."""
        stat: Stat | None
        try:
            if self._descriptor >= 0:
                stat = parse_stat(os.pread(self._descriptor, 4096, 0))
            else:
                stat = read_stat(machine, self.identity.pid)
        except (OSError, ValueError):
            stat = None
        self.present = stat is not None and stat.start == self.identity.start
        if self.present:
            assert stat is not None
            self.stat = stat
        return self.present

    @property
    def alive(self) -> bool:
        """Whether it can still run: zombies cannot."""
        return self.stat.state not in "ZX"

    def close(self) -> bool:
        """Close the stat file; False if it was closed before."""
        if self._descriptor < 0:
            return False
        os.close(self._descriptor)
        self._descriptor = -1
        return True


class Tree:
    """The descendants of `root`; the root itself is not among `members`."""

    _kept_open = 0  # of all trees of this process

    def __init__(
        self, machine: Machine, root: int, only_child: int | None = None, *, keep_open: int = _KEEP_OPEN
    ) -> None:
        """Follow the descendants of `root`, with up to `keep_open` of their stat files held open.

        With `only_child` given, that is its one descendant so far, and the
        processes already on the machine need not be read.
        """
        self._machine = machine
        self._keep_open = keep_open
        self._last_pid = -1
        self._visited: set[int] = set()
        self.members: dict[int, Process] = {}
        self.vanished: list[Process] = []
        stat = read_stat(machine, root)
        self.root = Process(Identity(root, stat.start), stat)
        if keep_open:
            self.root.keep_open(machine)
        if only_child is not None:
            self._visited = self._present()
            self._adopt(only_child, read_stat(machine, only_child))

    def refresh(self, *, find_new: bool = True) -> None:
        """Read every member again and find new ones; those that ended are in `vanished` until next time.

        Finding new ones reads every process that was forked on the whole machine since the last time.
        """
        self.vanished = []
        # A process reaped between the reading of its parent and its own is in neither: then all are read again.
        for _ in range(_PASSES):
            if not self._reread():
                break
        if not find_new:
            return
        newest = last_pid(self._machine)
        if newest != self._last_pid or self.vanished:
            if newest < self._last_pid:
                self._visited = set(self.members)  # pids wrapped around: one that was another's may be the job's now
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
        strangers: dict[int, Stat] = {}
        for pid in sorted(present - self._visited):
            try:
                strangers[pid] = read_stat(self._machine, pid)
            except (OSError, ValueError):
                present.discard(pid)
        self._visited = present
        grown = True
        while grown:
            grown = False
            for pid, stat in list(strangers.items()):
                if stat.ppid in self.members or stat.ppid == self.root.identity.pid:
                    self._adopt(pid, strangers.pop(pid))
                    grown = True
        # A process whose parent was not listed yet is checked again next time.
        self._visited -= {pid for pid, stat in strangers.items() if stat.ppid and stat.ppid not in present}

    def _present(self) -> set[int]:
        return {int(name) for name in os.listdir(self._machine.proc) if name.isdigit()}

    def _adopt(self, pid: int, stat: Stat) -> None:
        process = Process(Identity(pid, stat.start), stat)
        if Tree._kept_open < self._keep_open and process.keep_open(self._machine):
            Tree._kept_open += 1
        self.members[pid] = process

    def _remove(self, pid: int) -> None:
        process = self.members.pop(pid)
        # The pid may belong to another process by the next scan.
        self._visited.discard(pid)
        Tree._kept_open -= process.close()
        self.vanished.append(process)

    def running(self) -> list[Process]:
        """Members that can still run, as of the last refresh."""
        return [process for process in self.members.values() if process.alive]

    def running_pids(self, *, with_root: bool) -> list[int]:
        """The same as pids, after the root's with `with_root`, if it can run."""
        rooted = [self.root] if with_root and self.root.present and self.root.alive else []
        return [process.identity.pid for process in (*rooted, *self.running())]

    def close(self) -> None:
        self.root.close()
        for process in self.members.values():
            Tree._kept_open -= process.close()
        self.members.clear()
