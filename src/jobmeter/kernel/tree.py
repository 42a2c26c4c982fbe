"""The processes of a job: all descendants of one root, followed over time.

Under a shepherd nothing escapes: it is the job's subreaper, so a process whose
parent died is again below the root. Processes are listed parents first.
"""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine, read_bytes
from jobmeter.kernel.procfs import Identity, Stat, last_pid, parse_stat, read_stat

_KEEP_OPEN = 600
"""Descriptors kept on files of /proc; most systems allow 1024 and the caller needs some."""


class Process:
    """One process and its open files: a kept descriptor never shows a pid's next owner."""

    __slots__ = ("_descriptors", "identity", "present", "stat")

    def __init__(self, identity: Identity, stat: Stat) -> None:
        self.identity = identity
        self.stat = stat
        self.present = True
        self._descriptors: dict[str, int] = {}

    def keep_open(self, machine: Machine, name: str) -> bool:
        """Keep a file of the process open, so that reading it again is one call."""
        try:
            descriptor = os.open(f"{machine.proc}/{self.identity.pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        self._descriptors[name] = descriptor
        return True

    def read(self, machine: Machine, name: str) -> bytes:
        """The file `name` of /proc/PID; OSError when the process is gone or does not allow it."""
        descriptor = self._descriptors.get(name)
        if descriptor is not None:
            return os.pread(descriptor, 4096, 0)
        return read_bytes(f"{machine.proc}/{self.identity.pid}/{name}")

    def reread(self, machine: Machine) -> bool:
        """Read `stat` anew; False when the process is gone."""
        stat: Stat | None
        try:
            stat = parse_stat(self.read(machine, "stat"))
        except (OSError, ValueError):
            stat = None
        self.present = stat is not None and stat.start == self.identity.start
        if self.present:
            assert stat is not None
            self.stat = stat
        return self.present

    @property
    def alive(self) -> bool:
        """Whether it can still run: zombies only wait for their parent to notice."""
        return self.stat.state not in "ZX"

    def close(self) -> int:
        """Let go of the open files; return how many there were."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        closed = len(self._descriptors)
        self._descriptors = {}
        return closed


class Tree:
    """The descendants of `root`; the root itself is not among `members`."""

    def __init__(
        self, machine: Machine, root: int, only_child: int | None = None, keep: tuple[str, ...] = ("stat",)
    ) -> None:
        """Follow the descendants of `root`, with the files `keep` of each held open.

        With `only_child` given, that is its one descendant so far, and the
        processes already on the machine need not be looked at.
        """
        self._keep = keep
        self._machine = machine
        self._kept_open = 0
        self._last_pid = ""
        self._known: set[int] = set()
        self.members: dict[int, Process] = {}
        self.vanished: list[Process] = []
        self.root = self._open(root, read_stat(machine, root))
        if only_child is not None:
            self._known = self._present()
            self.members[only_child] = self._open(only_child, read_stat(machine, only_child))

    def refresh(self) -> None:
        """Read every member anew and find new ones; who is gone is in `vanished` until next time."""
        self.vanished = []
        self.root.reread(self._machine)
        for pid, process in list(self.members.items()):
            if not process.reread(self._machine):
                self._remove(pid)
        newest = last_pid(self._machine)
        if newest != self._last_pid or self.vanished:
            self._last_pid = newest
            self._find_new()

    def _find_new(self) -> None:
        present = self._present()
        strangers = {}
        for pid in sorted(present - self._known):
            try:
                strangers[pid] = read_stat(self._machine, pid)
            except (OSError, ValueError):
                present.discard(pid)
        self._known = present
        grown = True
        while grown:
            grown = False
            for pid, stat in list(strangers.items()):
                if stat.ppid in self.members or stat.ppid == self.root.identity.pid:
                    self.members[pid] = self._open(pid, strangers.pop(pid))
                    grown = True
        # Whose parent was not listed yet is looked at again next time.
        self._known -= {pid for pid, stat in strangers.items() if stat.ppid and stat.ppid not in present}

    def _present(self) -> set[int]:
        return {int(name) for name in os.listdir(self._machine.proc) if name.isdigit()}

    def _open(self, pid: int, stat: Stat) -> Process:
        process = Process(Identity(pid, stat.start), stat)
        for name in self._keep:
            if self._kept_open < _KEEP_OPEN and process.keep_open(self._machine, name):
                self._kept_open += 1
        return process

    def _remove(self, pid: int) -> None:
        process = self.members.pop(pid)
        # The pid may be in other hands by the next scan.
        self._known.discard(pid)
        self._kept_open -= process.close()
        self.vanished.append(process)

    def running(self) -> list[Process]:
        """Members that can still run, as of the last refresh."""
        return [process for process in self.members.values() if process.alive]

    def running_pids(self, *, with_root: bool) -> list[int]:
        """The same as pids, after the root's if it is asked for and can run."""
        rooted = [self.root] if with_root and self.root.present and self.root.alive else []
        return [process.identity.pid for process in (*rooted, *self.running())]

    def close(self) -> None:
        for process in (self.root, *self.members.values()):
            process.close()
        self.members.clear()
