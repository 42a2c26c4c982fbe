"""The blocks of this process that are open: which of them run beside each other, and who resets the peak mark.

The mark of a process's memory (VmHWM) is one. It is read into every open block before it is reset for another.
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
"""Seconds until a block is sampled: the first sample, of all processes, would slow down many short ones."""


class _Reset(NamedTuple):
    """What was known when the mark was last reset. To read it is dear, and needless without a page fault since."""

    usage: struct_rusage
    memory: OwnMemory


class OpenBlocks:
    """One for the process. A forked child begins without any: those of its parent are not its own.

    The meter calls `tick` when the oldest block that is not sampled yet should be.
    """

    finished = True  # for the meter: it is added again when there is need

    def __init__(self, meter: Meter = PROCESS_METER) -> None:
        self.meter = meter
        self._blocks: list[Block] = []
        self._lock = threading.Lock()
        self._is_scheduled = False
        self._reset: _Reset | None = None  # None: the kernel does not allow it

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
        """Have the meter call `tick` in time. Its thread then runs before a block counts what is started."""
        with self._lock:
            is_scheduled, self._is_scheduled = self._is_scheduled, True
        if not is_scheduled:
            self.meter.add(self)

    def _young(self) -> list[Block]:
        return [each for each in self._blocks if not each.is_watched]

    def add(self, block: Block) -> None:
        """Begin to count a block, in its own thread."""
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
        """Count it no more."""
        with self._lock:
            clock = block.counts.clock
            clock.settle(alone=clock.alone)
            self._read_mark()
            self._blocks.remove(block)
            for each in self._blocks:
                if not each.counts.clock.alone and self._is_alone(each.counts):
                    each.counts.clock.settle(alone=True)

    def _is_alone(self, counts: BlockCounts) -> bool:
        """Whether no other thread has an open block now."""
        return not counts.own_thread and all(each.counts.thread == counts.thread for each in self._blocks)

    def settle(self, counts: BlockCounts) -> None:
        """Bring the clock of an open block and the marks of all up to date."""
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
        """In a forked child: close what it has inherited of its parent's blocks."""
        for block in self._blocks:
            block.counts.clock.close()
        self._blocks = []
        self._lock = threading.Lock()  # the other may be held by a thread that stayed with the parent
        self._is_scheduled = False
        self._reset = None


OPEN_BLOCKS = OpenBlocks()
os.register_at_fork(after_in_child=OPEN_BLOCKS.forget_all)


def _reset_mark() -> _Reset | None:
    """Let the mark begin at the present size; None where that cannot be."""
    usage = own_usage()
    if not reset_high_mark(THIS_MACHINE):
        return None
    resident = read_own_resident(THIS_MACHINE)
    return _Reset(usage, OwnMemory(resident, resident))


def present_task() -> int | None:
    """The asyncio task or greenlet that runs now, if any: several take turns in one thread."""
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
