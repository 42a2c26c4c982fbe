"""block_: a piece of a Python program, from its start to its stop, with the threads and processes that it starts."""

from __future__ import annotations

import time

from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.light_typing import Protocol
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

CPU = Measurement(
    "block_cpu_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "CPU time of the block, with all that it started; of its own thread alone while other threads have blocks too.",
)  # fmt: skip
CPU_PERCENT = Measurement(
    "block_cpu_percent", "percent", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "CPU in use, as a rate of block_cpu_seconds; 100 is one core.", Gauge.RATE,
)  # fmt: skip
MEM_PEAK = Measurement(
    "block_mem_peak", "bytes", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "Most resident memory of the process during the block; with those it started, as far as samples show it.",
    Gauge.MARK,
)  # fmt: skip
MEM_GROWTH = Measurement(
    "block_mem_growth", "bytes", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "block_mem_peak less the resident memory of the process when the block began.", Gauge.MARK,
)  # fmt: skip
MEMORY = Measurement(
    "block_memory", "bytes", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "Resident memory of the process and those that the block started, what is shared counted once.",
)  # fmt: skip
PROCESSES = Measurement(
    "block_processes", "count", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "Processes: this one and those that the block started.",
)  # fmt: skip
READ = Measurement(
    "block_read_bytes", "bytes", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "Bytes read from disk by the process and the children it waited for.",
)  # fmt: skip
WRITE = Measurement(
    "block_write_bytes", "bytes", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "Bytes written that go to disk, by the process and the children it waited for.",
)  # fmt: skip
STOLEN = Measurement(
    "block_stolen_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.SAMPLED,
    "Time in which a hypervisor used the CPUs of this machine for others, since the block was first sampled.",
)  # fmt: skip


class BlockHandle(Protocol):
    """What a block reports about itself, counted from a first reading at its start. See `session.block_counts`."""

    started: float

    def counters(self) -> Readings:
        """CPU time and I/O so far."""

    def levels(self) -> Readings:
        """Memory and processes now."""

    def marks(self) -> Readings:
        """The highest memory so far."""

    def cpu_nanoseconds(self) -> int | None:
        """CPU time so far of everything that is counted, cheap to read; None if it is not known."""

    def qualities(self) -> dict[str, Quality]:
        """The quality of each key for which it differs from the description."""

    def processes(self) -> list[ProcessUse]:
        """The processes of the block."""


class BlockCollector:
    name = "block"
    measurements = (CPU, CPU_PERCENT, MEM_PEAK, MEM_GROWTH, MEMORY, PROCESSES, READ, WRITE, STOLEN)
    default = frozenset(m.key for m in measurements)

    def check(self, machine: Machine) -> None:
        raise NoData("these measurements exist only for blocks of a Python program")

    def open(self, target: Target, wanted: frozenset[str]) -> BlockSource:
        if target.block is None:
            self.check(target.machine)
        assert target.block is not None
        return BlockSource(target.block)


class BlockSource:
    def __init__(self, block: BlockHandle) -> None:
        self._block = block
        self._rate = CpuPercent(block.started)
        self.cpu_nanoseconds = block.cpu_nanoseconds
        self.processes = block.processes

    def read(self, moment: Moment) -> Readings:
        return {**self._counters(), **self._block.levels(), **self._block.marks()}

    def peek(self, moment: Moment) -> Readings:
        return {**self._block.levels(), **self._block.marks()}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return {**self._counters(), **self._block.marks()}

    def qualities(self) -> dict[str, Quality]:
        return self._block.qualities()

    def close(self) -> None:
        return

    def _counters(self) -> Readings:
        before = time.monotonic()
        readings = self._block.counters()
        percent = self._rate.update(before, float(readings[CPU.key]), time.monotonic())  # type: ignore[arg-type]
        return readings if percent is None else {**readings, CPU_PERCENT.key: percent}
