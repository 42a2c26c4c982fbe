"""The processes of a block: this one, and those that were started since the block began."""

from __future__ import annotations

import os
import threading
import time

from jobmeter.collectors.contract import ProcessUse
from jobmeter.collectors.proc_memory import Shares
from jobmeter.collectors.roster import Roster
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.own_process import is_forked, own_children
from jobmeter.kernel.procfs import read_smaps_rollup
from jobmeter.kernel.tree import Process, Tree
from jobmeter.redaction import Redaction

_FRESH = 0.004
"""Seconds for which one look at the processes serves all blocks."""


class Descendants:
    """All processes below this one, followed for all blocks together as long as one of them needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tree: Tree | None = None
        self._process = 0
        self._users = 0
        self._looked = 0.0

    def open(self) -> None:
        with self._lock:
            self._users += 1
            if self._tree is None:
                self._process = os.getpid()
                # Whoever is there now is no descendant, if there is no child: then nobody need be read.
                tree = Tree(THIS_MACHINE, self._process, childless=True)
                if own_children(THIS_MACHINE):
                    tree.close()
                    tree = Tree(THIS_MACHINE, self._process)
                self._tree = tree
                self._looked = 0.0

    def look(self, *, anew: bool = False) -> tuple[Process, list[Process]]:
        """This process and its descendants, parents first; as of just now, or when another block looked."""
        with self._lock:
            assert self._tree is not None, "it is not open"
            if anew or time.monotonic() - self._looked > _FRESH:
                self._tree.refresh()
                self._looked = time.monotonic()
            return self._tree.root, list(self._tree.members.values())

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._tree is not None:
                self._tree.close()
                self._tree = None

    def forget(self) -> None:
        """In a forked child: these are its parent's."""
        self._lock = threading.Lock()
        if self._tree is not None:
            self._tree.close()
        self._tree, self._users = None, 0


DESCENDANTS = Descendants()
os.register_at_fork(after_in_child=DESCENDANTS.forget)


class BlockProcesses:
    """Those of one block, at each look."""

    def __init__(self, before: frozenset[int], redaction: Redaction) -> None:
        """`before` are the children that ran when the block began; neither they nor theirs are its own."""
        DESCENDANTS.open()
        self._before = before
        self._shares = Shares(THIS_MACHINE)
        self._roster = Roster(THIS_MACHINE, {}, redact=redaction.words)
        self._present: dict[int, Process] = {}
        self.started_any = False
        root, _ = DESCENDANTS.look()
        self._roster.begin([root])
        self._lent = _shared_with_parent(root)

    def look(self) -> tuple[int, int]:
        """The memory of all of them, what is shared counted once, and how many they are."""
        root, members = DESCENDANTS.look()
        mine = self._mine(root, members)
        vanished = [process for pid, process in self._present.items() if mine.get(pid) is not process]
        self._present = mine
        self.started_any = self.started_any or bool(mine)
        self._roster.update([root, *mine.values()], vanished)
        holding = [each for each in (root, *mine.values()) if each.alive and not each.stat.exiting]
        memory = root.stat.rss
        if len(holding) > 1:
            self._shares.update(holding)
            total, others = (self._shares.estimate(each) for each in (holding, holding[1:]))
            if total is not None and others is not None:
                # A page that is copied because it was written to is shared no longer, and was lent before.
                memory = min(total + self._lent, memory + others) if self._lent else total
        return memory, max(len([each for each in (root, *mine.values()) if each.alive]), 1)

    def running(self) -> int:
        """How many of those that the block started still run."""
        root, members = DESCENDANTS.look(anew=True)
        return sum(process.alive for process in self._mine(root, members).values())

    def listed(self) -> list[ProcessUse]:
        return self._roster.listed()

    def close(self) -> None:
        DESCENDANTS.close()

    def _mine(self, root: Process, members: list[Process]) -> dict[int, Process]:
        mine: dict[int, Process] = {}
        for process in members:
            pid, parent = process.identity.pid, process.stat.ppid
            is_child = parent == root.identity.pid and pid not in self._before
            # One whose parent has ended is below another process now.
            if is_child or parent in mine or self._present.get(pid) is process:
                mine[pid] = process
        return mine


def _shared_with_parent(root: Process) -> int:
    """Memory of this process that its parent has too, and so is only in part in the sum of what its processes share.

    A child of a pool is a copy of the program that started it. Alone it counts with all that it has; it is not
    smaller because it starts a process.
    """
    if not is_forked(THIS_MACHINE):
        return 0
    try:
        return max(root.stat.rss - read_smaps_rollup(THIS_MACHINE, root.identity.pid).pss, 0)
    except (OSError, ValueError):
        return 0  # the kernel has no such file
