"""The open blocks of this process: which of them run at the same time, and when the high-water mark is reset.

A process has one high-water mark of its memory (VmHWM). Before it is reset for a new block, all open blocks note it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from resource import struct_rusage

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.own_process import (
    OwnMemory,
    own_usage,
    page_faults,
    read_own_memory,
    read_own_resident,
    reset_high_mark,
)
from jobmeter.light_typing import TYPE_CHECKING, NamedTuple
from jobmeter.meter.meter import PROCESS_METER, Meter

if TYPE_CHECKING:
    from jobmeter.session.block import Block
    from jobmeter.session.block_counts import BlockCounts


_YOUNG = 0.05
"""Seconds until a block is sampled: the first sample reads all processes, and would slow down many short blocks."""


class _Reset(NamedTuple):
    """The state when the mark was last reset. Reading the mark is slow, and needless without a page fault since."""

    usage: struct_rusage
    memory: OwnMemory


class OpenBlocks:
    """All open blocks of this process. A forked child begins with none: the blocks of its parent are not its own.

    The meter calls `tick` when it is time to sample the oldest block that is not sampled yet.
    """

    finished = True  # the meter does not queue it again after `tick`; it is added when needed

    def __init__(self, meter: Meter = PROCESS_METER) -> None:
        self.meter = meter
        self._blocks: list[Block] = []
        self._lock = threading.Lock()
        self._is_scheduled = False
        self._reset: _Reset | None = None  # None: the kernel does not allow a reset

    def due(self) -> float:
        return min((each.counts.started for each in self._young()), default=time.monotonic()) + _YOUNG

    def tick(self) -> None:
        """Begin to sample the blocks that are no longer young."""
        with self._lock:
            young = self._young()
        for block in young:
            if block.counts.started + _YOUNG <= time.monotonic():
                block.watch()
        with self._lock:
            self._is_scheduled = bool(self._young())
        if self._is_scheduled:
            self.meter.add(self)

    def schedule(self) -> None:
        """Have the meter call `tick` in time. Called before `add`, so that no block counts the thread of the meter."""
        with self._lock:
            is_scheduled, self._is_scheduled = self._is_scheduled, True
        if not is_scheduled:
            self.meter.add(self)

    def _young(self) -> list[Block]:
        return [each for each in self._blocks if not each.is_watched]

    def add(self, block: Block) -> None:
        """Begin to count a block. Called in the thread of the block."""
        counts = block.counts
        with self._lock:
            if self._blocks:
                self._read_mark()
            self._reset = _reset_mark()
            memory = self._read_mark() if self._reset is None else self._reset.memory
            usage = own_usage() if self._reset is None else self._reset.usage
            counts.begin(memory, usage, resets=self._reset is not None, alone=self._is_alone(counts))
            for other in self._blocks:
                each = other.counts
                if each.thread != counts.thread:
                    if each.clock.alone:
                        each.clock.settle(alone=False)
                elif each.is_interrupted_by(counts):
                    each.interleaved = counts.interleaved = True
            self._blocks.append(block)

    def remove(self, block: Block) -> None:
        """Stop counting a block."""
        with self._lock:
            clock = block.counts.clock
            clock.settle(alone=clock.alone)
            self._read_mark()
            self._blocks.remove(block)
            for each in self._blocks:
                if not each.counts.clock.alone and self._is_alone(each.counts):
                    each.counts.clock.settle(alone=True)

    def _is_alone(self, counts: BlockCounts) -> bool:
        """Whether no other thread has an open block; False for a block that counts its own thread alone."""
        return not counts.own_thread and all(each.counts.thread == counts.thread for each in self._blocks)

    def settle(self, counts: BlockCounts) -> None:
        """Update the clock of an open block, and the memory marks of all open blocks."""
        with self._lock:
            if any(each.counts is counts for each in self._blocks):
                self._read_mark()
                counts.clock.settle(alone=self._is_alone(counts))

    def _read_mark(self) -> OwnMemory | None:
        try:
            if self._reset is not None and page_faults(self._reset.usage) == page_faults(own_usage()):
                memory = OwnMemory(read_own_resident(THIS_MACHINE), self._reset.memory.high_mark)
            else:
                memory = read_own_memory(THIS_MACHINE)
        except (OSError, ValueError):
            return None  # no /proc here
        for each in self._blocks:
            each.counts.note_memory(memory)
        return memory

    def forget_all(self) -> None:
        """In a forked child: close what it inherited from the blocks of its parent."""
        for block in self._blocks:
            block.counts.clock.close()
        self._blocks = []
        self._lock = threading.Lock()  # the inherited lock may be held by a thread that exists only in the parent
        self._is_scheduled = False
        self._reset = None


OPEN_BLOCKS = OpenBlocks()
os.register_at_fork(after_in_child=OPEN_BLOCKS.forget_all)


def _reset_mark() -> _Reset | None:
    """Reset the high-water mark to the present size; None if the kernel does not allow it."""
    usage = own_usage()
    if not reset_high_mark(THIS_MACHINE):
        return None
    resident = read_own_resident(THIS_MACHINE)
    return _Reset(usage, OwnMemory(resident, resident))


def present_task() -> int | None:
    """The id of the asyncio task or greenlet that runs now, None if there is none: several take turns in one thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None  # no event loop runs in this thread
        if task is not None:
            return id(task)
    greenlet = sys.modules.get("greenlet")
    if greenlet is not None:
        current = greenlet.getcurrent()
        if current.parent is not None:
            return id(current)
    return None
