"""The processes of a job: all descendants of one root, followed over time.

Under a shepherd nothing escapes: it is the job's subreaper, so a process whose
parent died is again below the root. Processes are listed parents first.
"""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine, read_bytes
from jobmeter.kernel.procfs import STAT_BYTES, Identity, Stat, last_pid, parse_stat

_KEEP_OPEN = min(600, os.sysconf("SC_OPEN_MAX") // 2)
"""The most files of /proc held open, by all trees together; most systems allow 1024 and the caller needs some."""


_PASSES = 4
"""The most passes over a tree per refresh, while processes of it end."""


class Process:
    """One process and its open stat file: an open descriptor never shows a later process with the same pid."""

    __slots__ = ("_descriptor", "_line", "alive", "holds_memory", "identity", "present", "stat")

    def __init__(self, identity: Identity, stat: Stat, descriptor: int = -1, line: bytes | None = None) -> None:
        """`line` was read from its open stat file; with that, reading it again is one call."""
        self.identity = identity
        self.present = True
        self._descriptor = descriptor
        self._line = line
        self.take(stat)

    def take(self, stat: Stat) -> None:
        """Take what was read of it now."""
        self.stat = stat  # the same object as before when the process did nothing since
        self.alive = stat.state not in "ZX"  # whether it can still run: zombies cannot
        # One that is ending frees its memory piece by piece, which is no level of the job.
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
    """Read a process for the first time; OSError when it has ended."""
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

    _kept_open = 0  # of all trees of this process

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

        With `only_child` given, that is its one descendant so far, and the
        processes already on the machine need not be read; nor with `childless`, when there is none so far.
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
        # Pids that wrapped around: a child may be numbered lower than its parent.
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
