"""What one block used, counted from its start to its stop. `collectors.block` and the record take it from here."""

from __future__ import annotations

import threading
import time
from resource import struct_rusage

from jobmeter.collectors import block as keys
from jobmeter.collectors.contract import ProcessUse, Readings
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.own_process import (
    OwnMemory,
    drops_children,
    has_children,
    own_children,
    own_usage,
    read_own_io,
)
from jobmeter.kernel.procfs import is_ending
from jobmeter.model import Kind, Quality
from jobmeter.redaction import Redaction
from jobmeter.session.block_clock import BlockClock, BlockCpu
from jobmeter.session.block_processes import BlockProcesses
from jobmeter.session.open_blocks import OPEN_BLOCKS, present_task

_COUNTERS = frozenset(m.key for m in keys.BlockCollector.measurements if m.kind is Kind.COUNTER)
_SHARED_KEYS = (keys.MEM_PEAK.key, keys.MEM_GROWTH.key, keys.MEMORY.key, keys.READ.key, keys.WRITE.key)


class BlockCounts:
    """Counts from `begin` to `freeze`, for the thread that creates it. Implements `collectors.block.BlockHandle`."""

    clock: BlockClock
    left_running: int
    """How many processes of the block still ran at its end. Set by `freeze`."""

    def __init__(self, *, stepped: bool, own_thread: bool, interleaved: bool) -> None:
        """See `session.block.Block` for what these mean."""
        self.own_thread = own_thread
        self.interleaved = interleaved
        self.final: Readings | None = None  # the last readings, set by `freeze`
        self._stepped = stepped
        self._processes: BlockProcesses | None = None
        self.thread = threading.get_native_id()
        self.task = present_task()
        self.began = time.time()
        self.started = time.monotonic()

    def begin(self, memory: OwnMemory | None, usage: struct_rusage, *, resets: bool, alone: bool) -> None:
        """Begin to count. Called by `OPEN_BLOCKS`, which has read the high-water mark, and reset it if `resets`."""
        self._memory = self._last_memory = memory
        self._mark_resets = resets
        self._peak = memory.resident if memory is not None else 0
        self._before = own_children(THIS_MACHINE) if has_children() else frozenset()
        self.clock = BlockClock(OPEN_BLOCKS.meter, alone=alone, stepped=self._stepped)
        self._io = read_own_io(THIS_MACHINE, usage, self.clock.children)

    def note_memory(self, memory: OwnMemory) -> None:
        """Note the memory of this process, and its high-water mark since the last reset."""
        self._last_memory = memory
        began = self._memory
        # A mark that cannot be reset says something about this block only if it rose.
        counts = self._mark_resets or (began is not None and memory.high_mark > began.high_mark)
        self._peak = max(self._peak, memory.high_mark if counts else memory.resident)

    def is_interrupted_by(self, other: BlockCounts) -> bool:
        """Whether `other`, which begins in the same thread, is of another task, which takes turns with this block's."""
        if self._stepped and not self.clock.in_step:
            return True
        return self.task is not None and self.task != other.task

    def follow_processes(self, redaction: Redaction) -> None:
        """From now on follow the processes that the block starts, for `levels`."""
        try:
            self._processes = BlockProcesses(self._before, redaction)
        except OSError:
            return  # no /proc here

    # What `collectors.block` reads.

    def counters(self) -> Readings:
        if self.final is not None:
            return {key: value for key, value in self.final.items() if key in _COUNTERS}
        OPEN_BLOCKS.settle(self)
        return {keys.CPU.key: self._cpu(children=self._children_known()).seconds, **self._io_since()}

    def levels(self) -> Readings:
        if self.final is not None or self._processes is None:
            return {}
        memory, processes = self._processes.read_memory()
        self._peak = max(self._peak, memory)
        return {keys.MEMORY.key: memory, keys.PROCESSES.key: processes}

    def marks(self) -> Readings:
        if self._memory is None:
            return {}
        return {keys.MEM_PEAK.key: self._peak, keys.MEM_GROWTH.key: max(self._peak - self._memory.resident, 0)}

    def cpu_nanoseconds(self) -> int | None:
        return self.clock.nanoseconds() if self.final is None else None

    def processes(self) -> list[ProcessUse]:
        return self._processes.listed() if self._processes is not None else []

    def qualities(self) -> dict[str, Quality]:
        children = self._children if self.final is not None else self._children_known()
        cpu = self._final_cpu if self.final is not None else self._cpu(children=children)
        qualities = {keys.CPU.key: cpu.quality}
        if not cpu.whole_process:
            qualities |= dict.fromkeys(_SHARED_KEYS, Quality.SHARED)
        elif children and not (self._processes is not None and self._processes.started_any):
            # No look saw these processes while they ran.
            qualities |= dict.fromkeys(_SHARED_KEYS[:3], Quality.AT_LEAST)
        return qualities

    def resident_at_ends(self) -> tuple[int, ...]:
        """The resident memory of this process at the start and at the last look; empty where it cannot be read."""
        began, ended = self._memory, self._last_memory
        return (began.resident, ended.resident) if began is not None and ended is not None else ()

    # How it ends.

    def freeze(self) -> None:
        """Take the last readings, for the record."""
        self._children = self._children_known()
        self._final_cpu = self._cpu(children=self._children)
        counters = {keys.CPU.key: self._final_cpu.seconds, **self._io_since()}
        self.left_running = self._count_left_running() if self._children else 0
        self.final = {**counters, **self.marks()}
        if (stolen := self.clock.stolen()) is not None:
            self.final[keys.STOLEN.key] = round(stolen, 2)

    def _cpu(self, *, children: bool) -> BlockCpu:
        return self.clock.so_far(
            children=children,
            foreign_child_reaped=bool(self._before) and not self._before <= own_children(THIS_MACHINE),
            interleaved=self.interleaved,
        )

    def _children_known(self) -> bool:
        """Whether the block started processes, as far as is known."""
        if self._processes is not None and self._processes.started_any:
            return True
        if self.clock.waited_for_children or drops_children():
            return True
        return has_children() and (not self._before or bool(own_children(THIS_MACHINE) - self._before))

    def _count_left_running(self) -> int:
        if self._processes is not None:
            return self._processes.running()
        return sum(not is_ending(THIS_MACHINE, pid) for pid in own_children(THIS_MACHINE) - self._before)

    def _io_since(self) -> dict[str, int]:
        now = read_own_io(THIS_MACHINE, own_usage(), self.clock.children) if self._io is not None else None
        if now is None or self._io is None:
            return {}
        return {
            keys.READ.key: max(now.read_bytes - self._io.read_bytes, 0),
            keys.WRITE.key: max(now.write_bytes - self._io.write_bytes, 0),
        }

    def close(self) -> None:
        """Close the perf events, and stop following processes."""
        self.clock.close()
        if self._processes is not None:
            self._processes.close()
