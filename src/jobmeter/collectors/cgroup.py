"""cgroup_: the kernel's accounts of a cgroup that holds this job and nothing else."""

from __future__ import annotations

import time

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import Group, create_group
from jobmeter.kernel.machine import Machine
from jobmeter.model import Across, Kind, Measurement, Quality


def _counter(key: str, unit: str, help: str, quality: Quality = Quality.EXACT) -> Measurement:
    return Measurement(f"cgroup_{key}", unit, Kind.COUNTER, Across.LAST, quality, help)


def _gauge(key: str, unit: str, quality: Quality, help: str) -> Measurement:
    return Measurement(f"cgroup_{key}", unit, Kind.GAUGE, Across.LAST, quality, help)


MEM_PEAK = _gauge(
    "mem_peak", "bytes", Quality.EXACT, "Highest memory charged: the job's, its page cache and the kernel's for it."
)
MEM_CURRENT = _gauge(
    "mem_current", "bytes", Quality.SAMPLED, "Memory charged now, page cache and kernel memory included."
)
ANON = _gauge("anon", "bytes", Quality.SAMPLED, "Anonymous memory: heaps, stacks, what no file backs.")
FILE = _gauge("file", "bytes", Quality.SAMPLED, "Page cache of the job's files, which the kernel can drop.")
HELD = _gauge("held", "bytes", Quality.SAMPLED, "Memory that cannot be reclaimed: mem_current less file.")
WORKING_SET = _gauge(
    "working_set", "bytes", Quality.SAMPLED, "mem_current less inactive page cache, as Kubernetes counts it."
)
SWAP = _gauge("swap", "bytes", Quality.SAMPLED, "Memory swapped out.")
CPU = _counter("cpu_seconds", "seconds", "CPU time of all that ever ran in the job's group.")
CPU_PERCENT = _gauge(
    "cpu_percent", "percent", Quality.SAMPLED, "CPU in use, as a rate of cgroup_cpu_seconds; 100 is one core."
)
CPU_USER = _counter("cpu_user_seconds", "seconds", "The part of cgroup_cpu_seconds in user space.")
CPU_SYSTEM = _counter("cpu_system_seconds", "seconds", "The part of cgroup_cpu_seconds in the kernel.")
THROTTLED = _counter("throttled_seconds", "seconds", "Time the job was held back by its CPU limit.")
OOM_KILLS = _counter("oom_kills", "count", "Processes of the job that the kernel killed for want of memory.")
PIDS_PEAK = _gauge("pids_peak", "count", Quality.EXACT, "Most processes and threads at any moment.")
READ = _counter("read_bytes", "bytes", "Bytes read from block devices.", Quality.AT_LEAST)
WRITE = _counter(
    "write_bytes", "bytes", "Bytes written to block devices; cgroup v1 misses delayed writes.", Quality.AT_LEAST
)
MEM_PRESSURE = _counter("mem_pressure_seconds", "seconds", "Time in which some process waited for memory.")
CPU_PRESSURE = _counter("cpu_pressure_seconds", "seconds", "Time in which some process waited for a CPU.")
IO_PRESSURE = _counter("io_pressure_seconds", "seconds", "Time in which some process waited for I/O.")

_PRESSURES = {MEM_PRESSURE.key: "memory", CPU_PRESSURE.key: "cpu", IO_PRESSURE.key: "io"}
_MEMORY = {MEM_CURRENT.key, ANON.key, FILE.key, HELD.key, WORKING_SET.key, SWAP.key}
_IO = {READ.key, WRITE.key}
_ANSWERED_BY = {
    MEM_PEAK.key: "memory_peak", PIDS_PEAK.key: "pids_peak", OOM_KILLS.key: "oom_kills", THROTTLED.key: "throttled",
    CPU.key: "cpu", CPU_USER.key: "cpu", CPU_SYSTEM.key: "cpu",
}  # fmt: skip
"""What the kernel keeps until the group is removed."""


class CgroupCollector:
    name = "cgroup"
    measurements = (
        MEM_PEAK, MEM_CURRENT, ANON, FILE, HELD, WORKING_SET, SWAP,
        CPU, CPU_PERCENT, CPU_USER, CPU_SYSTEM, THROTTLED, OOM_KILLS, PIDS_PEAK, READ, WRITE,
        MEM_PRESSURE, CPU_PRESSURE, IO_PRESSURE,
    )  # fmt: skip
    default = frozenset(
        m.key for m in (MEM_PEAK, HELD, FILE, CPU, CPU_PERCENT, CPU_USER, CPU_SYSTEM, THROTTLED, OOM_KILLS, PIDS_PEAK)
    )

    def check(self, machine: Machine) -> None:
        create_group(machine, "check").remove()

    def missing(self, machine: Machine) -> dict[str, str]:
        """Keys that a group has no file for here."""
        group = create_group(machine, "check")
        keys = frozenset(m.key for m in self.measurements)
        found = CgroupSource(group, keys).read(Moment(time.monotonic()))
        group.remove()
        why = f"cgroup v{group.version} of this kernel does not tell it"
        return dict.fromkeys(keys - found.keys() - {CPU_PERCENT.key}, why)

    def open(self, target: Target, wanted: frozenset[str]) -> CgroupSource:
        if target.group is None:
            raise NoData("the job has no cgroup of its own")
        return CgroupSource(target.group, wanted)


class CgroupSource:
    def __init__(self, group: Group, wanted: frozenset[str]) -> None:
        self._group = group
        self._wanted = wanted
        now = time.monotonic()
        used = group.cpu()  # a container has used some already, for its start
        self._rate = CpuPercent(now, used.total if used else 0.0)

    def cpu_nanoseconds(self) -> int | None:
        return self._group.cpu_nanoseconds()

    def page_faults(self) -> int | None:
        return None

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def read(self, moment: Moment) -> Readings:
        group = self._group
        found: dict[str, float | None] = {
            MEM_PEAK.key: group.memory_peak(),
            OOM_KILLS.key: group.oom_kills(),
            PIDS_PEAK.key: group.pids_peak(),
        }
        if self._wanted & _MEMORY:
            found |= self._memory()
        found |= self._cpu()
        if self._wanted & _IO and (io := group.io()) is not None:
            found |= {READ.key: io.read, WRITE.key: io.written}
        for key in self._wanted & _PRESSURES.keys():
            found[key] = group.pressure_seconds(_PRESSURES[key])
        return {key: value for key, value in found.items() if value is not None}

    def _memory(self) -> dict[str, float | None]:
        memory = self._group.memory()
        if memory is None:
            return {}
        return {
            MEM_CURRENT.key: memory.current,
            ANON.key: memory.anon,
            FILE.key: memory.file,
            HELD.key: max(memory.current - memory.file, 0),
            WORKING_SET.key: max(memory.current - memory.inactive_file, 0),
            SWAP.key: memory.swap,
        }

    def _cpu(self) -> dict[str, float | None]:
        before = time.monotonic()
        cpu = self._group.cpu()
        if cpu is None:
            return {}
        return {
            CPU.key: round(cpu.total, 6),
            CPU_USER.key: cpu.user,
            CPU_SYSTEM.key: cpu.system,
            THROTTLED.key: cpu.throttled,
            CPU_PERCENT.key: self._rate.update(before, cpu.total, time.monotonic()),
        }

    def incomplete(self) -> frozenset[str]:
        """Keys that the group of a container, which its engine removes, could not tell to the end."""
        missed = self._group.missed() if hasattr(self._group, "missed") else ()
        return frozenset(key for key, question in _ANSWERED_BY.items() if question in missed)

    def close(self) -> None:
        return
