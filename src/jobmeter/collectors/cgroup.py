"""cgroup_: the kernel's accounts of a cgroup that holds this job and nothing else."""

from __future__ import annotations

import time

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.group import Group, create_group, enclosing_cpu_account, read_cpu_account
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import read_stat
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality


def _counter(key: str, unit: str, help: str, quality: Quality = Quality.EXACT) -> Measurement:
    return Measurement(f"cgroup_{key}", unit, Kind.COUNTER, Across.LAST, quality, help)


def _gauge(key: str, unit: str, quality: Quality, help: str, gauge: Gauge = Gauge.LEVEL) -> Measurement:
    return Measurement(f"cgroup_{key}", unit, Kind.GAUGE, Across.LAST, quality, help, gauge)


MEM_PEAK = _gauge(
    "mem_peak",
    "bytes",
    Quality.EXACT,
    "Highest memory charged: the job's, its page cache and the kernel's for it.",
    Gauge.MARK,
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
HUGETLB = _gauge(
    "hugetlb", "bytes", Quality.SAMPLED, "Huge pages (hugetlb) in use, which no other memory figure counts."
)
HUGETLB_PEAK = _gauge(
    "hugetlb_peak",
    "bytes",
    Quality.EXACT,
    "Most huge pages (hugetlb) in use at any moment; cgroup v1 alone keeps it.",
    Gauge.MARK,
)
SWAP = _gauge("swap", "bytes", Quality.SAMPLED, "Memory swapped out.")
CPU = _counter("cpu_seconds", "seconds", "CPU time of all that ever ran in the job's group.")
CPU_PERCENT = _gauge(
    "cpu_percent",
    "percent",
    Quality.SAMPLED,
    "CPU in use, as a rate of cgroup_cpu_seconds; 100 is one core.",
    Gauge.RATE,
)
CPU_USER = _counter("cpu_user_seconds", "seconds", "The part of cgroup_cpu_seconds in user space.")
CPU_SYSTEM = _counter("cpu_system_seconds", "seconds", "The part of cgroup_cpu_seconds in the kernel.")
OUTER_CPU = _counter(
    "outer_cpu_seconds",
    "seconds",
    "The job used at most this: all CPU time in the cgroup that jobmeter itself runs in, less that of jobmeter.",
)
THROTTLED = _counter("throttled_seconds", "seconds", "Time the job was held back by its CPU limit.")
OOM_KILLS = _counter("oom_kills", "count", "Processes of the job that the kernel killed for want of memory.")
PIDS_PEAK = _gauge("pids_peak", "count", Quality.EXACT, "Most processes and threads at any moment.", Gauge.MARK)
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
"""Key → account of `Group.missed`: what the kernel counts until the group is removed."""


class CgroupCollector:
    name = "cgroup"
    measurements = (
        MEM_PEAK, MEM_CURRENT, ANON, FILE, HELD, WORKING_SET, SWAP, HUGETLB, HUGETLB_PEAK,
        CPU, CPU_PERCENT, CPU_USER, CPU_SYSTEM, OUTER_CPU, THROTTLED, OOM_KILLS, PIDS_PEAK, READ, WRITE,
        MEM_PRESSURE, CPU_PRESSURE, IO_PRESSURE,
    )  # fmt: skip
    default = frozenset({
        MEM_PEAK.key, HELD.key, FILE.key, HUGETLB_PEAK.key, CPU.key, CPU_PERCENT.key, CPU_USER.key, CPU_SYSTEM.key,
        OUTER_CPU.key, THROTTLED.key, OOM_KILLS.key, PIDS_PEAK.key,
        MEM_PRESSURE.key, CPU_PRESSURE.key, IO_PRESSURE.key, SWAP.key,
    })  # fmt: skip

    def check(self, machine: Machine) -> None:
        if not enclosing_cpu_account(machine):
            create_group(machine, "check").remove()

    def missing(self, machine: Machine) -> dict[str, str]:
        """Keys for which a group has no file here; all but `cgroup_outer_cpu_seconds` if no group can be made."""
        keys = frozenset(m.key for m in self.measurements)
        try:
            group = create_group(machine, "check")
        except NoData as reason:
            return dict.fromkeys(keys - {OUTER_CPU.key}, str(reason))
        try:
            return CgroupSource(group, keys).missing()
        finally:
            group.remove()

    def open(self, target: Target, wanted: frozenset[str]) -> CgroupSource | OuterSource:
        if target.group is not None:
            return CgroupSource(target.group, wanted, target)
        if target.root_is_job or OUTER_CPU.key not in wanted:
            raise NoData("the job has no cgroup of its own")
        return OuterSource(target.machine, wanted)

    def redundant(self, target: Target) -> frozenset[str]:
        """The bound (`OUTER_CPU`) if the job has a group; all other default keys if it has none."""
        return frozenset({OUTER_CPU.key}) if target.group is not None else self.default - {OUTER_CPU.key}


class CgroupSource:
    def __init__(self, group: Group, wanted: frozenset[str], target: Target | None = None) -> None:
        self._group = group
        self._wanted = wanted
        self._target = target
        self._memory_charged = 0
        self._nanoseconds: int | None = None  # CPU time, as last read
        self._peeks = Allowance(share=0.01, at_first=0.015)
        now = time.monotonic()
        used = group.cpu()  # a container has already used some for its start
        self._rate = CpuPercent(now, used.total if used else 0.0)

    def missing(self) -> dict[str, str]:
        """Keys for which this group has no file."""
        values = self.read(Moment(time.monotonic()))
        why = f"cgroup v{self._group.version} of this kernel does not report it"
        missing = dict.fromkeys(self._wanted - values.keys() - {CPU_PERCENT.key}, why)
        if OUTER_CPU.key in missing:
            missing[OUTER_CPU.key] = "a job gets a cgroup of its own here, which counts its CPU time alone"
        return missing

    def cpu_nanoseconds(self) -> int | None:
        self._nanoseconds = self._group.cpu_nanoseconds()
        return self._nanoseconds

    def peek(self, moment: Moment) -> Readings:
        used = self._cpu_just_read()
        if not (self._wanted & _MEMORY and self._peeks.covers()):
            return used
        with self._peeks:
            return _present(self._memory()) | used

    def _cpu_just_read(self) -> Readings:
        """The CPU time that the meter read before this peek; nothing for a container: it would include its start."""
        in_container = self._target is not None and self._target.container is not None
        if in_container or self._nanoseconds is None:
            return {}
        return {CPU.key: round(self._nanoseconds / 1e9, 6)}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def read(self, moment: Moment) -> Readings:
        group = self._group
        values: dict[str, float | None] = {
            MEM_PEAK.key: group.memory_peak(),
            OOM_KILLS.key: group.oom_kills(),
            PIDS_PEAK.key: group.pids_peak(),
            HUGETLB_PEAK.key: group.hugetlb_peak(),
        }
        if HUGETLB.key in self._wanted:
            values[HUGETLB.key] = group.hugetlb()
        if self._wanted & _MEMORY:
            values |= self._memory()
        values |= self._cpu()
        if self._wanted & _IO and (io := group.io()) is not None:
            values |= {READ.key: io.read, WRITE.key: io.written}
        for key in self._wanted & _PRESSURES.keys():
            values[key] = group.pressure_seconds(_PRESSURES[key])
        return _present(values)

    def _memory(self) -> dict[str, float | None]:
        memory = self._group.memory()
        if memory is None:
            return {}
        before, self._memory_charged = self._memory_charged, memory.current
        if memory.current < before and self._is_ending():
            return {}
        return {
            MEM_CURRENT.key: memory.current,
            ANON.key: memory.anon,
            FILE.key: memory.file,
            HELD.key: max(memory.current - memory.file, 0),
            WORKING_SET.key: max(memory.current - memory.inactive_file, 0),
            SWAP.key: memory.swap,
        }

    def _is_ending(self) -> bool:
        """Whether the main process is exiting and frees its memory: what is left is not a level of the job."""
        if self._target is None or not self._target.main:
            return False
        try:
            stat = read_stat(self._target.machine, self._target.main)
        except (OSError, ValueError):
            return False  # it ended before, and other processes still run
        return stat.exiting

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
        """Keys that lack the last usage of a container, because its group was removed before the last reading."""
        missed = self._group.missed()
        return frozenset(key for key, question in _ANSWERED_BY.items() if question in missed)

    def close(self) -> None:
        return


class OuterSource:
    """Bounds the CPU time of a job without a group: it runs in the group of jobmeter, together with other processes.

    It reads twice, before and after the job, and nothing while the job runs.
    """

    def __init__(self, machine: Machine, wanted: frozenset[str]) -> None:
        """Raises NoData if the kernel does not count exactly what the group used."""
        self._machine = machine
        self._wanted = wanted
        self._account = enclosing_cpu_account(machine)
        # Here the group is read first and then jobmeter, at the end the other way round: so the usage of the group
        # includes all that is subtracted as jobmeter's own.
        self._used_before = read_cpu_account(self._account)
        self._own_before = time.process_time_ns()

    def missing(self) -> dict[str, str]:
        return dict.fromkeys(self._wanted - {OUTER_CPU.key}, "the job has no cgroup of its own")

    def read(self, moment: Moment) -> Readings:
        return {}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        if enclosing_cpu_account(self._machine) != self._account:
            return {}  # jobmeter was moved to another group
        own = time.process_time_ns() - self._own_before
        used = read_cpu_account(self._account) - self._used_before
        return {OUTER_CPU.key: round(max(used - own, 0) / 1e9, 6)}

    def close(self) -> None:
        return


def _present(values: dict[str, float | None]) -> Readings:
    return {key: value for key, value in values.items() if value is not None}
