"""proc_: the processes of the job's tree, as /proc shows them."""

from __future__ import annotations

import time

from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Target
from jobmeter.collectors.proc_memory import HighMarks, Shares
from jobmeter.collectors.rate import CpuPercent
from jobmeter.collectors.roster import Roster
from jobmeter.errors import NoData
from jobmeter.kernel import procfs
from jobmeter.kernel.ledger import Account, Ledger
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.kernel.tree import Process, Tree
from jobmeter.model import Across, Kind, Measurement, Quality


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
HWM_MAX = _gauge(
    "hwm_max", "bytes", Across.MAX, "Largest resident size any one process ever had (VmHWM).", Quality.AT_LEAST
)
CPU = _counter("cpu_seconds", "seconds", "CPU time of the tree, in ticks of 10 ms; who nobody waited for as last seen.")
CPU_PERCENT = _gauge(
    "cpu_percent", "percent", Across.LAST, "CPU in use, as a rate of proc_cpu_seconds; 100 is one core."
)
THREADS = _gauge("threads_total", "count", Across.SUM, "Threads.")
PROCESSES = _gauge("processes", "count", Across.LAST, "Processes.")
READ = _counter("read_bytes", "bytes", "Bytes read from disk; reads from the cache are none.")
WRITE = _counter("write_bytes", "bytes", "Bytes written that go to disk, now or later.")
READ_OPS = _counter("read_ops", "count", "Calls of read(2) and the like.")
WRITE_OPS = _counter("write_ops", "count", "Calls of write(2) and the like.")
MAJOR_FAULTS = _counter("major_faults", "count", "Page faults that had to wait for a disk.")
SWITCHES = _counter("ctx_switches", "count", "Context switches of each process's first thread.")
STATE = Measurement(
    "proc_state", "text", Kind.CATEGORY, Across.TALLY, Quality.SAMPLED,
    "What processes were doing: R running, S sleeping, D waiting for a disk, Z ended, T stopped.",
)  # fmt: skip
CMD = Measurement("proc_cmd", "text", Kind.LABEL, Across.LAST, Quality.SAMPLED, "Command lines.")
ETIME = _gauge("etime", "seconds", Across.MAX, "Age of the oldest process.")

_FROM_IO = {READ.key, WRITE.key, READ_OPS.key, WRITE_OPS.key}
_FROM_STATUS = {SWAP_TOTAL.key, SWITCHES.key}
_FROM_SMAPS = {PSS_TOTAL.key, USS_TOTAL.key}
_COUNTED = (READ.key, WRITE.key, READ_OPS.key, WRITE_OPS.key)
_NO_IO = (0, 0, 0, 0)


class ProcCollector:
    name = "proc"
    measurements = (
        RSS, RSS_TOTAL, PSS_TOTAL, USS_TOTAL, SWAP_TOTAL, VSZ_TOTAL, HWM_MAX, CPU, CPU_PERCENT, THREADS, PROCESSES,
        READ, WRITE, READ_OPS, WRITE_OPS, MAJOR_FAULTS, SWITCHES, STATE, CMD, ETIME,
    )  # fmt: skip
    default = frozenset(
        m.key for m in (RSS_TOTAL, PSS_TOTAL, HWM_MAX, CPU, CPU_PERCENT, PROCESSES, READ, WRITE, MAJOR_FAULTS)
    )

    def check(self, machine: Machine) -> None:
        if not machine.has_proc():
            raise NoData(f"no {machine.proc} here")

    def open(self, target: Target, wanted: frozenset[str]) -> ProcSource:
        self.check(target.machine)
        if target.group is not None and target.group.memory_peak() is not None and wanted == self.default:
            # The cgroup's own figures of memory are exact, and cost the job nothing.
            wanted -= {PSS_TOTAL.key, HWM_MAX.key}
        return ProcSource(target, wanted)


class ProcSource:
    """Follows the tree; while no process of it ran, nothing is read again."""

    def __init__(self, target: Target, wanted: frozenset[str]) -> None:
        self._target = target
        self._machine = target.machine
        self._wanted = wanted
        only_child = None if target.root_is_job else target.main
        self._tree = Tree(self._machine, target.root, only_child)
        self._accounts: dict[Identity, Account] = {}
        self._ledger = Ledger()
        self._switches = Ledger()
        self._roster = Roster(self._machine, {target.main: target.command} if target.command else {})
        self._high_marks = HighMarks(self._machine)
        self._shares = Shares(self._machine)
        self._switches_base: int | None = None
        self._unchanged: Readings = {}
        self._children_faults = 0
        if target.root_is_job:
            self._tree.refresh()
            if not self._counted():
                self._tree.close()
                raise NoData(f"process {target.root} has ended")
        # Counted from here: a shepherd has used a little, something already running much.
        self._base = self._totals = self._add_up(self._counted())
        self._rate = CpuPercent(time.monotonic())

    def read(self, moment: Moment) -> Readings:
        if not (moment.quiet and self._unchanged):
            self._unchanged = self._look()
        elif self._shares.behind:
            self._unchanged |= self._memory_shares([process for process in self._counted() if process.alive])
        return {**self._unchanged, **self._cpu(moment.monotonic)}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return {**self._look(), **self._cpu(moment.monotonic)}

    def _look(self) -> Readings:
        """Read the tree anew."""
        self._tree.refresh()
        counted = self._counted()
        self._roster.update(counted, self._tree.vanished)
        self._totals = self._add_up(counted)
        totals = [now - before for now, before in zip(self._totals, self._base)]
        readings: Readings = dict(zip(_COUNTED, totals[1:])) if self._wanted & _FROM_IO else {}
        readings[MAJOR_FAULTS.key] = totals[-1]
        alive = [process for process in counted if process.alive]
        if counted:
            readings[PROCESSES.key] = max(len(alive), self._came_and_went(counted), 1)
        if not alive:
            return readings
        readings |= self._levels(alive)
        if HWM_MAX.key in self._wanted and (hwm := self._high_marks.update(alive)) is not None:
            readings[HWM_MAX.key] = hwm
        if self._wanted & _FROM_SMAPS:
            readings |= self._memory_shares(alive)
        if self._wanted & _FROM_STATUS:
            readings |= self._from_status(alive)
        return readings

    def _came_and_went(self, counted: list[Process]) -> int:
        """The least number of processes at some moment since the last look: a child waited for had a parent."""
        before, self._children_faults = self._children_faults, sum(p.stat.children_minor_faults for p in counted)
        return 2 if self._children_faults > before else 0

    def _levels(self, alive: list[Process]) -> Readings:
        """What one line of each process's stat tells."""
        stats = [process.stat for process in alive]
        rss = [stat.rss for stat in stats]
        readings: Readings = {
            RSS.key: rss,
            RSS_TOTAL.key: rss,
            VSZ_TOTAL.key: [stat.vsize for stat in stats],
            THREADS.key: [stat.threads for stat in stats],
            STATE.key: [stat.state for stat in stats],
        }
        if ETIME.key in self._wanted:
            now = time.clock_gettime(time.CLOCK_BOOTTIME)
            readings[ETIME.key] = [round(now - stat.start / TICKS_PER_SECOND, 2) for stat in stats]
        if CMD.key in self._wanted:
            readings[CMD.key] = [self._roster.cmd(process) for process in alive]
        return readings

    def _memory_shares(self, alive: list[Process]) -> Readings:
        shares = self._shares.update(alive)
        return {PSS_TOTAL.key: [s.pss for s in shares], USS_TOTAL.key: [s.uss for s in shares]} if shares else {}

    def outran(self, cpu_nanoseconds: int) -> bool:
        """Whether the tree used more CPU than that, beyond what ticks may blur."""
        return (self._totals[0] - self._base[0]) / TICKS_PER_SECOND > cpu_nanoseconds / 1e9 * 1.05 + 0.05

    def incomplete(self) -> frozenset[str]:
        """Keys whose highest moment may have gone unread."""
        return frozenset(_FROM_SMAPS) if self._shares.missed_the_top else frozenset()

    def _counted(self) -> list[Process]:
        """The processes that make up the job."""
        members = [*self._tree.members.values()]
        if self._target.root_is_job and self._tree.root.present:
            members.insert(0, self._tree.root)
        return members

    def _add_up(self, counted: list[Process]) -> tuple[int, ...]:
        """The counters by now: each process's own first, then the sum."""
        # A shepherd is no part of the job, but inherits the accounts of all it waited for.
        everyone = counted if self._target.root_is_job else [self._tree.root, *counted]
        self._accounts = {process.identity: self._account(process) for process in everyone}
        return self._ledger.update(self._accounts)

    def _account(self, process: Process) -> Account:
        stat = process.stat
        ticks = stat.user + stat.system + stat.children_user + stat.children_system
        faults = stat.minor_faults + stat.children_minor_faults
        before = self._accounts.get(process.identity)
        if before is not None and before.faults == faults and before.used[0] == ticks:
            # It did hardly anything: what little I/O there may be is told by the next reading, or at its end.
            return before._replace(parent=stat.ppid)
        io = self._io(process) if self._wanted & _FROM_IO and (ticks or before is None) else _NO_IO
        major = stat.major_faults + stat.children_major_faults
        return Account(stat.ppid, faults, stat.children_minor_faults, (ticks, *io, major))

    def _io(self, process: Process) -> tuple[int, ...]:
        try:
            return procfs.read_io(self._machine, process.identity.pid)
        except (OSError, ValueError):
            return _NO_IO  # another user's process, or gone

    def _cpu(self, before: float) -> Readings:
        seconds = (self._totals[0] - self._base[0]) / TICKS_PER_SECOND
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
            # The kernel adds no switches to the parent: the ledger keeps those of the dead, as last seen.
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

    def live(self) -> list[ProcessUse]:
        """Every process that lives now."""
        return self._roster.live()

    def close(self) -> None:
        self._tree.close()
