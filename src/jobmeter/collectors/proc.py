"""proc_: the processes of the job's tree, as /proc shows them."""

from __future__ import annotations

import os
import time

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Target
from jobmeter.collectors.proc_counters import Counters
from jobmeter.collectors.proc_delays import DiskWaits, RunDelays
from jobmeter.collectors.proc_escapes import CGROUP_MEMORY, Escapes
from jobmeter.collectors.proc_memory import HighMarks, Shares, Statuses
from jobmeter.collectors.proc_peaks import PeakTrace
from jobmeter.collectors.proc_uncounted import UncountedMemory
from jobmeter.collectors.rate import CpuPercent
from jobmeter.collectors.roster import Roster
from jobmeter.errors import NoData
from jobmeter.kernel import procfs
from jobmeter.kernel.ledger import Account, Ledger
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine, read_bytes
from jobmeter.kernel.tree import Process, Tree
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

if TYPE_CHECKING:
    from jobmeter.record.types import PeakEntry


def _counter(key: str, unit: str, help: str) -> Measurement:
    return Measurement(f"proc_{key}", unit, Kind.COUNTER, Across.LAST, Quality.AT_LEAST, help)


def _gauge(key: str, unit: str, across: Across, help: str, quality: Quality = Quality.SAMPLED) -> Measurement:
    return Measurement(f"proc_{key}", unit, Kind.GAUGE, across, quality, help)


RSS = _gauge("rss", "bytes", Across.MAX, "Resident memory of the largest process.")
RSS_TOTAL = _gauge(
    "rss_total", "bytes", Across.SUM, "Resident memory summed over processes: what they share counts in each."
)
PSS_TOTAL = _gauge("pss_total", "bytes", Across.SUM, "Resident memory, what is shared counted once (PSS).")
USS_TOTAL = _gauge("uss_total", "bytes", Across.SUM, "Resident memory that is not shared with any process (USS).")
SWAP_TOTAL = _gauge("swap_total", "bytes", Across.SUM, "Memory swapped out.")
VSZ_TOTAL = _gauge("vsz_total", "bytes", Across.SUM, "Address space, used or not.")
MEMORY = _gauge(
    "memory", "bytes", Across.LAST,
    "Resident memory, what is shared counted once: PSS as last read, moved by what resident sizes changed since.",
)  # fmt: skip
HUGETLB_TOTAL = _gauge(
    "hugetlb_total", "bytes", Across.LAST,
    "Huge pages (hugetlb) of the processes, which no resident size counts, where the machine has any.",
)  # fmt: skip
HELD_TOTAL = _gauge(
    "held_total", "bytes", Across.LAST,
    "Memory of the job with huge pages, swap, page tables and unmapped shared memory, where there may be some.",
)  # fmt: skip
HWM_MAX = _gauge(
    "hwm_max", "bytes", Across.MAX, "Largest resident size any one process ever had (VmHWM).", Quality.AT_LEAST
)._replace(gauge=Gauge.MARK)
CPU = _counter(
    "cpu_seconds", "seconds", "CPU time of the tree, in ticks of 10 ms; processes not waited for as last read."
)
CPU_PERCENT = _gauge(
    "cpu_percent", "percent", Across.LAST, "CPU in use, as a rate of proc_cpu_seconds; 100 is one core."
)._replace(gauge=Gauge.RATE)
THREADS = _gauge("threads_total", "count", Across.SUM, "Threads.")
PROCESSES = _gauge("processes", "count", Across.LAST, "Processes; the most since the reading before.")._replace(
    gauge=Gauge.RATE
)
READ = _counter("read_bytes", "bytes", "Bytes read from disk; reads from the page cache do not count.")
WRITE = _counter("write_bytes", "bytes", "Bytes written that go to disk, now or later.")
READ_OPS = _counter("read_ops", "count", "Calls of read(2) and the like.")
WRITE_OPS = _counter("write_ops", "count", "Calls of write(2) and the like.")
MAJOR_FAULTS = _counter("major_faults", "count", "Page faults that had to wait for a disk.")
SWITCHES = _counter("ctx_switches", "count", "Context switches of each process's first thread.")
RUN_DELAY = _counter(
    "run_delay_seconds", "seconds", "Time in which threads were ready to run and had no CPU, summed over threads."
)
DISK_WAIT = _counter(
    "disk_wait_seconds", "seconds", "Time in which a process waited for a disk (state D) and none ran, as far as seen."
)._replace(quality=Quality.SAMPLED)
STATE = Measurement(
    "proc_state", "text", Kind.CATEGORY, Across.TALLY, Quality.SAMPLED,
    "What processes were doing: R running, S sleeping, D waiting for a disk, Z ended, T stopped.",
)  # fmt: skip
CMD = Measurement("proc_cmd", "text", Kind.LABEL, Across.LAST, Quality.SAMPLED, "Command lines.")
ETIME = _gauge("etime", "seconds", Across.MAX, "Age of the oldest process.")

_IO = (READ.key, WRITE.key, READ_OPS.key, WRITE_OPS.key)
_FROM_IO = set(_IO)
_FROM_STATUS = {SWAP_TOTAL.key, SWITCHES.key}
_UNCOUNTED = {HUGETLB_TOTAL.key, HELD_TOTAL.key}
_FROM_SMAPS = {PSS_TOTAL.key, USS_TOTAL.key, MEMORY.key}
_FEW = 4
"""Up to this many processes are read at every peek; with more, an allowance limits the cost."""


class ProcCollector:
    name = "proc"
    measurements = (
        RSS, RSS_TOTAL, PSS_TOTAL, USS_TOTAL, MEMORY, SWAP_TOTAL, VSZ_TOTAL, HUGETLB_TOTAL, HELD_TOTAL, HWM_MAX,
        CPU, CPU_PERCENT, THREADS, PROCESSES, READ, WRITE, READ_OPS, WRITE_OPS, MAJOR_FAULTS, SWITCHES,
        RUN_DELAY, DISK_WAIT, STATE, CMD, ETIME,
    )  # fmt: skip
    default = frozenset({
        RSS_TOTAL.key, PSS_TOTAL.key, MEMORY.key, HUGETLB_TOTAL.key, HELD_TOTAL.key, HWM_MAX.key, CPU.key,
        CPU_PERCENT.key, PROCESSES.key, READ.key, WRITE.key, MAJOR_FAULTS.key,
        RUN_DELAY.key, DISK_WAIT.key,
    })  # fmt: skip

    def check(self, machine: Machine) -> None:
        if not machine.has_proc():
            raise NoData(f"no {machine.proc} here")
        if not machine.shows_own_pids():
            raise NoData(
                f"{machine.proc} belongs to another pid namespace and shows other processes. Mount one for this one."
            )

    def open(self, target: Target, wanted: frozenset[str]) -> ProcSource:
        self.check(target.machine)
        return ProcSource(target, wanted)

    def redundant(self, target: Target) -> frozenset[str]:
        """Figures of memory, if the job's cgroup has a peak: its figures are exact, and cost the job nothing."""
        has_peak = target.group is not None and target.group.memory_peak() is not None
        return frozenset({PSS_TOTAL.key, MEMORY.key, HWM_MAX.key}) if has_peak else frozenset()


class ProcSource:
    """Follows the process tree; if no process of the job ran, it reads nothing again."""

    def __init__(self, target: Target, wanted: frozenset[str]) -> None:
        self._target = target
        self._machine = target.machine
        self._wanted = wanted
        only_child = None if target.root_is_job else target.main
        self._tree = Tree(self._machine, target.root, only_child)
        self._switches = Ledger()
        self._roster = Roster(
            self._machine,
            {target.main: target.command} if target.command else {},
            announced=only_child,  # a shepherd reports the end of its child at once
            redact=target.redaction.words,
        )
        # With a group, memory is read there: here only the list of processes is needed.
        self._peeks = Allowance(0.01, at_first=0.015) if target.group is None else Allowance(0.0025, at_first=0.002)
        self._search = Allowance(share=0.005, at_first=0.002)
        statuses = Statuses(self._machine)
        self._high_marks = HighMarks(statuses)
        self._shares = Shares(self._machine)
        self._uncounted = UncountedMemory(self._machine, target.group, statuses) if wanted & _UNCOUNTED else None
        self._escapes = Escapes(target)
        self._peak_trace = PeakTrace(self._machine, target.group, self._roster.cmd, self._shares.size)
        self._run_delays = RunDelays(self._machine)
        self._disk_waits = DiskWaits()
        self._switches_base: int | None = None
        self._level_readings: Readings = {}
        self._counter_readings: Readings = {}
        self._children_faults = 0
        if target.root_is_job:
            self._tree.refresh()
            if not self._counted():
                self._tree.close()
                raise NoData(f"process {target.root} has ended")
            self._roster.begin(self._counted())
            self._run_delays.begin(self._counted())
        self._counters = Counters(
            self._machine, self._with_shepherd(self._counted()), self._escapes, with_io=bool(wanted & _FROM_IO)
        )
        self._rate = CpuPercent(time.monotonic())

    def read(self, moment: Moment) -> Readings:
        if not (moment.quiet and self._counter_readings):
            self._update_readings()
        else:
            self.nothing_ran()
            self._escapes.update_while_quiet([process for process in self._counted() if process.alive])
            if self._shares.is_stale:
                holding = _holding(self._counted())
                self._level_readings |= self._memory_shares(holding)
                self._note_high(holding)
            if self._uncounted is not None and self._uncounted.is_stale:
                self._level_readings |= self._read_uncounted(self._uncounted, _holding(self._counted()))
        return {**self._counter_readings, **self._level_readings, **self._cpu(moment.monotonic)}

    def peek(self, moment: Moment) -> Readings:
        """The levels alone, as far as the allowances permit."""
        if len(self._tree.members) <= _FEW:  # as cheap as any other source
            holding = self._peek_at_levels()
        elif self._peeks.covers():
            with self._peeks:
                holding = self._peek_at_levels()
        else:
            return {}
        # The resident size shows by how much one process grew or shrank; only PSS shows what several share.
        self._level_readings |= self._memory_shares(holding, read=len(self._tree.members) > 1)
        self._note_high(holding)
        return self._level_readings

    def _peek_at_levels(self) -> list[Process]:
        """Read the levels of all processes; return the processes that hold memory."""
        if self._search.covers():
            with self._search:
                counted = self._follow()
        else:
            counted = self._follow(find_new=False)
        holding = _holding(counted)
        self._level_readings = self._levels(counted, holding)
        return holding

    def nothing_ran(self) -> None:
        self._roster.nothing_ran()
        self._disk_waits.nothing_ran()

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        if self._uncounted is not None:
            self._uncounted.check_at_end()
        self._update_readings()
        return {**self._counter_readings, **self._level_readings, **self._cpu(moment.monotonic)}

    def _update_readings(self) -> None:
        """Read the tree again."""
        counted = self._follow()
        self._counters.update(self._with_shepherd(counted))
        self._counter_readings = dict(zip(_IO, self._counters.io)) if self._wanted & _FROM_IO else {}
        self._counter_readings[MAJOR_FAULTS.key] = self._counters.major_faults
        self._counter_readings[DISK_WAIT.key] = round(self._disk_waits.seconds, 6)
        holding = _holding(counted)
        self._level_readings = self._levels(counted, holding) | self._memory_shares(holding)
        self._note_high(holding)
        if alive := [process for process in counted if process.alive]:
            self._escapes.update(alive)
            if RUN_DELAY.key in self._wanted and (delay := self._run_delays.update(alive)) is not None:
                self._counter_readings[RUN_DELAY.key] = round(delay, 6)
            if self._uncounted is not None:
                self._level_readings |= self._read_uncounted(self._uncounted, holding)
            if self._wanted & _FROM_STATUS:
                self._level_readings |= self._from_status(alive)

    def _note_high(self, holding: list[Process]) -> None:
        if len(holding) > 1 and self._wanted & _FROM_SMAPS:
            # Only PSS shows what several share; between its readings there is an estimate, which may be too high.
            shares = self._level_readings.get(PSS_TOTAL.key)
            size = sum(shares) if isinstance(shares, list) else 0  # type: ignore[arg-type]
        else:
            sizes = self._level_readings.get(RSS.key)
            size = sum(sizes) if isinstance(sizes, list) else 0  # type: ignore[arg-type]
        if size:
            self._peak_trace.update(holding, size)

    def _follow(self, *, find_new: bool = True) -> list[Process]:
        """Refresh the tree; return the processes of the job."""
        self._tree.refresh(find_new=find_new)
        counted = self._counted()
        self._roster.update(counted, self._vanished())
        self._disk_waits.update(counted)
        return counted

    def _levels(self, counted: list[Process], holding: list[Process]) -> Readings:
        alive = [process for process in counted if process.alive]
        readings: Readings = {}
        if counted:
            readings[PROCESSES.key] = max(len(alive), self._least_processes(counted), 1)
        if not holding:
            return readings
        readings |= self._from_stat(alive, holding)
        if STATE.key in self._wanted:
            readings[STATE.key] = [process.stat.state for process in counted if process.alive or self._is_left(process)]
        if HWM_MAX.key in self._wanted and (hwm := self._high_marks.update(alive)) is not None:
            readings[HWM_MAX.key] = hwm
        return readings

    def _least_processes(self, counted: list[Process]) -> int:
        """A lower bound of the processes at some moment since the last reading: a child waited for had a parent."""
        before, self._children_faults = self._children_faults, sum(p.stat.children_minor_faults for p in counted)
        return 2 if self._children_faults > before else 0

    def _from_stat(self, alive: list[Process], holding: list[Process]) -> Readings:
        """The readings that come from the stat line of each process."""
        rss = [process.stat.rss for process in holding]
        readings: Readings = {RSS.key: rss, RSS_TOTAL.key: rss}
        if VSZ_TOTAL.key in self._wanted:
            readings[VSZ_TOTAL.key] = [process.stat.vsize for process in holding]
        if THREADS.key in self._wanted:
            readings[THREADS.key] = [process.stat.threads for process in alive]
        if ETIME.key in self._wanted:
            now = time.clock_gettime(time.CLOCK_BOOTTIME)
            readings[ETIME.key] = [round(now - process.stat.start / TICKS_PER_SECOND, 2) for process in alive]
        if CMD.key in self._wanted:
            readings[CMD.key] = [self._roster.cmd(process) for process in alive]
        return readings

    def _memory_shares(self, holding: list[Process], *, read: bool = True) -> Readings:
        if not holding or not self._wanted & _FROM_SMAPS:
            return {}
        shares = self._shares.update(holding) if read or not self._shares.were_read else []
        readings: Readings = {MEMORY.key: memory} if (memory := self._shares.estimate(holding)) is not None else {}
        if shares:
            readings |= {PSS_TOTAL.key: [s.pss for s in shares], USS_TOTAL.key: [s.uss for s in shares]}
        return readings

    def _read_uncounted(self, uncounted: UncountedMemory, holding: list[Process]) -> Readings:
        moved = self._escapes.left_memory_group
        shares = self._shares.update(holding) if moved or self._wanted & _FROM_SMAPS else []
        amounts = uncounted.update(holding, shares, moved=moved)
        if amounts is None:
            return {}
        return {key: value for key, value in zip((HUGETLB_TOTAL.key, HELD_TOTAL.key), amounts) if value is not None}

    def outran(self, cpu_nanoseconds: int) -> bool:
        return self._counters.outran(cpu_nanoseconds)

    def missing(self) -> dict[str, str]:
        """The keys whose files this kernel does not have, or this user may not read."""
        missing: dict[str, str] = {}
        for keys, name in ((_FROM_IO, "io"), (_FROM_SMAPS, "smaps_rollup")):
            path = f"{self._machine.proc}/{self._target.main}/{name}"
            try:
                read_bytes(path)
            except PermissionError as error:
                missing |= dict.fromkeys(self._wanted & keys, f"{path}: {error.strerror}")
            except OSError:  # it has ended, or there is no such file
                if not os.path.exists(f"{self._machine.proc}/self/{name}"):
                    missing |= dict.fromkeys(self._wanted & keys, f"this kernel has no /proc/PID/{name}")
        return missing

    def incomplete(self) -> frozenset[str]:
        """Keys whose peak may have been missed, and keys of other sources that processes escaped."""
        keys = self._escapes.incomplete(self._counters.cpu_ticks)
        if self._shares.may_have_missed_peak:
            keys |= {PSS_TOTAL.key, USS_TOTAL.key}
        if self._uncounted is not None and self._uncounted.doubtful:
            keys |= {RSS_TOTAL.key, PSS_TOTAL.key, MEMORY.key, HELD_TOTAL.key, *CGROUP_MEMORY}
        if self._escapes.left_memory_group:
            keys.add(HELD_TOTAL.key)
        return frozenset(keys)

    def _counted(self) -> list[Process]:
        """The processes that make up the job."""
        members = [*self._tree.members.values()]
        if self._target.root_is_job and self._tree.root.present:
            members.insert(0, self._tree.root)
        return members

    def _is_left(self, zombie: Process) -> bool:
        """Whether the job left this zombie: a shepherd keeps its own children as zombies only for a last reading."""
        return self._target.root_is_job or zombie.stat.ppid != self._target.root

    def _vanished(self) -> list[Process]:
        """The processes of the job that have ended since the last refresh."""
        root = [self._tree.root] if self._target.root_is_job and not self._tree.root.present else []
        return [*root, *self._tree.vanished]

    def _with_shepherd(self, counted: list[Process]) -> list[Process]:
        """Add the shepherd: it is not part of the job, but has the usage of all processes that it waited for."""
        return counted if self._target.root_is_job else [self._tree.root, *counted]

    def _cpu(self, before: float) -> Readings:
        seconds = self._counters.cpu_seconds
        percent = self._rate.update(before, seconds, time.monotonic())
        return {CPU.key: seconds} if percent is None else {CPU.key: seconds, CPU_PERCENT.key: percent}

    def _from_status(self, alive: list[Process]) -> Readings:
        swap, accounts = [], {}
        for process in alive:
            try:
                status = procfs.read_status(self._machine, process.identity.pid)
            except OSError:
                continue
            swap.append(status.swap or 0)
            # The kernel adds no switches to the parent: the ledger stores those of ended processes, as last read.
            accounts[process.identity] = Account(process.stat.ppid, 1, 0, (status.context_switches,))
        (switches,) = self._switches.update(accounts) or (0,)
        if self._switches_base is None:
            self._switches_base = switches if self._target.root_is_job else 0
        readings: Readings = {SWITCHES.key: switches - self._switches_base}
        if swap:
            readings[SWAP_TOTAL.key] = swap
        return readings

    def processes(self) -> list[ProcessUse]:
        """The costliest processes so far, the rest as one entry."""
        return self._roster.listed()

    def peaks(self, started: float) -> list[PeakEntry]:
        """The highs of memory, and the processes that held it."""
        return self._peak_trace.entries(started)

    def live(self) -> list[ProcessUse]:
        """Every process that has not ended."""
        return self._roster.live()

    def close(self) -> None:
        self._tree.close()


def _holding(processes: list[Process]) -> list[Process]:
    return [process for process in processes if process.holds_memory]
