"""perf_: kernel counters inherited by every descendant, waited for or not."""

from __future__ import annotations

import os
import time

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.errors import NoData
from jobmeter.kernel.hostfs import read_cpu_time
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.perf import Event, open_event
from jobmeter.kernel.procfs import thread_ids
from jobmeter.kernel.tree import Tree
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

if TYPE_CHECKING:
    from jobmeter.collectors.perf_cost import PerfCost

CPU = Measurement(
    "perf_cpu_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "CPU time of the job and everything it started, to the nanosecond; in a virtual machine with stolen time.",
)  # fmt: skip
STOLEN = Measurement(
    "perf_stolen_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.SAMPLED,
    "Time that the hypervisor had this machine's CPUs for others, some of which may be in perf_cpu_seconds.",
)  # fmt: skip
CPU_PERCENT = Measurement(
    "perf_cpu_percent", "percent", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "CPU in use, as a rate of perf_cpu_seconds; 100 is one core.", Gauge.RATE,
)  # fmt: skip
FAULTS = Measurement(
    "perf_page_faults", "count", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "Page faults, minor and major.",
)  # fmt: skip
SWITCHES = Measurement(
    "perf_ctx_switches", "count", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "Context switches; ordinary users may not count them.",
)  # fmt: skip
INSTRUCTIONS = Measurement(
    "perf_instructions", "count", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "Instructions executed; of user space only, for ordinary users.",
)  # fmt: skip
CYCLES = Measurement(
    "perf_cycles", "count", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "CPU cycles; of user space only, for ordinary users.",
)  # fmt: skip

_EVENT_OF = {
    FAULTS.key: "page_faults",
    SWITCHES.key: "context_switches",
    INSTRUCTIONS.key: "instructions",
    CYCLES.key: "cycles",
}


_MOST_THREADS = 200
_NOT_FOR_USERS = "ordinary users may not count them"


class PerfCollector:
    name = "perf"
    measurements = (CPU, STOLEN, CPU_PERCENT, FAULTS, SWITCHES, INSTRUCTIONS, CYCLES)
    default = frozenset({CPU.key, STOLEN.key, CPU_PERCENT.key})

    def check(self, machine: Machine) -> None:
        open_event("task_clock", os.getpid()).close()

    def missing(self, machine: Machine) -> dict[str, str]:
        """Keys that cannot be counted here, by this user."""
        reasons = {}
        for key, name in _EVENT_OF.items():
            try:
                event = open_event(name, os.getpid())
            except NoData as reason:
                reasons[key] = str(reason)
                continue
            event.close()
            if key == SWITCHES.key and event.user_only:
                reasons[key] = _NOT_FOR_USERS
        return reasons

    def open(self, target: Target, wanted: frozenset[str]) -> PerfSource:
        return PerfSource(target, wanted)

    def redundant(self, target: Target) -> frozenset[str]:
        """The default keys, if a cgroup counts CPU time at no cost: events make forks and context switches slower."""
        return self.default if target.group is not None and target.group.cpu() is not None else frozenset()


class PerfSource:
    """Counts with perf events. One read, of a microsecond, also shows whether the job ran."""

    def __init__(self, target: Target, wanted: frozenset[str]) -> None:
        self._target = target
        self._at_exec = not target.root_is_job
        self._threads = [target.main] if self._at_exec else _running_threads(target)
        self._clock: Event | None = self._open("task_clock")  # None after the events were stopped
        self._cost: PerfCost | None = None
        self._rate = CpuPercent(time.monotonic())
        self._reports_rate = CPU_PERCENT.key in wanted
        self._machine = target.machine
        self._stolen_before = self._stolen() if STOLEN.key in wanted else None
        self._events: dict[str, Event] = {}
        self._missing: dict[str, str] = {}
        for key in sorted(wanted & _EVENT_OF.keys()):
            try:
                self._events[key] = self._open_counter(_EVENT_OF[key])
            except NoData as reason:
                self._missing[key] = str(reason)

    def _open(self, name: str) -> Event:
        return open_event(name, *self._threads, at_exec=self._at_exec)

    def _open_counter(self, name: str) -> Event:
        event = self._open(name)
        if name == "context_switches" and event.user_only:
            event.close()  # a switch happens in the kernel: the count would be 0
            raise NoData(_NOT_FOR_USERS)
        return event

    def missing(self) -> dict[str, str]:
        """The keys that cannot be counted of this job."""
        return self._missing

    def may_stop(self) -> None:
        """Allow the source to stop its events if they would slow the job down too much (`PerfCost`)."""
        from jobmeter.collectors.perf_cost import PerfCost

        self._cost = PerfCost(self._target)

    def cpu_nanoseconds(self) -> int | None:
        return self._clock.read() if self._clock is not None else None

    def peek(self, moment: Moment) -> Readings:
        """CPU time. Also checks what the events cost the job: if too much, stops them and raises NoData, once."""
        if self._clock is None:
            return {}
        nanoseconds = self._clock.read()
        if self._cost is not None and (why := self._cost.too_high(nanoseconds)) is not None:
            self.close()
            raise NoData(why)
        return {CPU.key: round(nanoseconds / 1e9, 6)}

    def incomplete(self) -> frozenset[str]:
        """The keys whose count is not a total, because the events were stopped."""
        return frozenset({CPU.key, CPU_PERCENT.key}) if self._clock is None else frozenset()

    def read(self, moment: Moment) -> Readings:
        if self._clock is None:
            return {}
        before = time.monotonic()
        seconds = self._clock.read() / 1e9
        readings: Readings = {CPU.key: round(seconds, 6)}
        percent = self._rate.update(before, seconds, time.monotonic())
        if percent is not None and self._reports_rate:
            readings[CPU_PERCENT.key] = percent
        for key, event in self._events.items():
            readings[key] = event.read()
        return readings

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        readings = self.read(moment)
        if readings and self._stolen_before is not None and (stolen := self._stolen()) is not None:
            readings[STOLEN.key] = round(stolen - self._stolen_before, 2)
        return readings

    def _stolen(self) -> float | None:
        try:
            return read_cpu_time(self._machine).stolen
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close the events: the kernel then removes them from every process of the job."""
        for event in (*([self._clock] if self._clock is not None else []), *self._events.values()):
            event.close()
        self._clock = None
        self._events = {}


def _running_threads(target: Target) -> list[int]:
    """Every thread of a job that already runs. Raises NoData if there are too many."""
    # A container's processes are listed in its group: its first readings must not wait for a scan of all processes.
    pids = target.group.processes() if target.container is not None and target.group is not None else []
    if target.root not in pids:
        tree = Tree(target.machine, target.root)
        tree.refresh()
        pids = tree.running_pids(with_root=True)
        tree.close()
    threads: list[int] = []
    for pid in pids:
        try:
            threads += thread_ids(target.machine, pid)
        except OSError:
            continue  # it has ended since it was listed
    if len(threads) > _MOST_THREADS:
        raise NoData(f"{len(threads)} threads already run, and each would need a descriptor for each counter")
    return threads
