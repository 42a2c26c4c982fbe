"""The processes of a block: this process, and its descendants that were started since the block began."""

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
"""Seconds for which the list of processes is used by all blocks, before it is read again."""


class Descendants:
    """All descendants of this process, followed once for all blocks, as long as a block needs them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tree: Tree | None = None
        self._process = 0
        self._users = 0
        self._read_at = 0.0

    def open(self) -> None:
        with self._lock:
            self._users += 1
            if self._tree is None:
                self._process = os.getpid()
                # If this process has no children, none of the processes that run now is a descendant,
                # and none need be read.
                tree = Tree(THIS_MACHINE, self._process, childless=True)
                if own_children(THIS_MACHINE):
                    tree.close()
                    tree = Tree(THIS_MACHINE, self._process)
                self._tree = tree
                self._read_at = 0.0

    def read(self, *, refresh: bool = False) -> tuple[Process, list[Process]]:
        """This process and its descendants, parents first. Read again if `refresh`, or after `_FRESH` seconds."""
        with self._lock:
            assert self._tree is not None, "it is not open"
            if refresh or time.monotonic() - self._read_at > _FRESH:
                self._tree.refresh()
                self._read_at = time.monotonic()
            return self._tree.root, list(self._tree.members.values())

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._tree is not None:
                self._tree.close()
                self._tree = None

    def forget(self) -> None:
        """In a forked child: drop the descendants of its parent."""
        self._lock = threading.Lock()
        if self._tree is not None:
            self._tree.close()
        self._tree, self._users = None, 0


DESCENDANTS = Descendants()
os.register_at_fork(after_in_child=DESCENDANTS.forget)


class BlockProcesses:
    """The processes of one block."""

    def __init__(self, before: frozenset[int], redaction: Redaction) -> None:
        """`before`: the children that ran when the block began. They and their descendants are not the block's."""
        DESCENDANTS.open()
        self._before = before
        self._shares = Shares(THIS_MACHINE)
        self._roster = Roster(THIS_MACHINE, {}, redact=redaction.words)
        self._present: dict[int, Process] = {}
        self.started_any = False
        root, _ = DESCENDANTS.read()
        self._roster.begin([root])
        self._parent_shared_bytes = _shared_with_parent(root)

    def read_memory(self) -> tuple[int, int]:
        """The memory of all processes of the block, shared memory counted once, and the number of processes."""
        root, members = DESCENDANTS.read()
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
                # A page that was copied on write is fully in `total`, and still in `shared`: hence the upper bound.
                shared = self._parent_shared_bytes
                memory = min(total + shared, memory + others) if shared else total
        return memory, max(len([each for each in (root, *mine.values()) if each.alive]), 1)

    def running(self) -> int:
        """How many of the processes that the block started still run."""
        root, members = DESCENDANTS.read(refresh=True)
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
            # A process whose parent has ended has another parent, but still belongs to the block.
            if is_child or parent in mine or self._present.get(pid) is process:
                mine[pid] = process
        return mine


def _shared_with_parent(root: Process) -> int:
    """Bytes of this process that its PSS does not count, because they are shared with the parent it was forked from.

    A worker of a pool is a fork of the program that started it. As long as it is alone, its whole resident memory
    counts; it must not seem smaller as soon as it starts a process.
    """
    if not is_forked(THIS_MACHINE):
        return 0
    try:
        return max(root.stat.rss - read_smaps_rollup(THIS_MACHINE, root.identity.pid).pss, 0)
    except (OSError, ValueError):
        return 0  # the kernel has no smaps_rollup
