"""psutil_: the processes of the job's tree, through the psutil library; for machines without /proc."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.collectors.roster import EndedProcesses, estimate_end
from jobmeter.errors import NoData
from jobmeter.kernel.ledger import Account, Ledger
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity, command_text
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

if TYPE_CHECKING:
    from psutil import Process

RSS_TOTAL = Measurement(
    "psutil_rss_total", "bytes", Kind.GAUGE, Across.SUM, Quality.SAMPLED,
    "Resident memory summed over processes: what they share counts in each.",
)  # fmt: skip
PSS_TOTAL = Measurement(
    "psutil_pss_total", "bytes", Kind.GAUGE, Across.SUM, Quality.SAMPLED,
    "Resident memory, what is shared counted once (PSS); on Linux only.",
)  # fmt: skip
CPU_PERCENT = Measurement(
    "psutil_cpu_percent", "percent", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "CPU in use, as a rate of psutil_cpu_seconds; 100 is one core.", Gauge.RATE,
)  # fmt: skip
CPU = Measurement(
    "psutil_cpu_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "CPU time of the tree; of processes that were not waited for, and on macOS of all that ended, as last read.",
)  # fmt: skip

_PASSES = 4
"""The most passes over the processes per sample: one more is made while some of them end."""


def _library() -> Any:
    try:
        import psutil
    except ImportError as error:
        raise NoData(f"psutil cannot be imported: {error}. Install it: pip install psutil") from None
    return psutil


class PsutilCollector:
    name = "psutil"
    measurements = (RSS_TOTAL, PSS_TOTAL, CPU_PERCENT, CPU)
    # PSS is expensive to read, and does not exist where psutil is the usual source.
    default = frozenset(m.key for m in (RSS_TOTAL, CPU_PERCENT, CPU))

    def check(self, machine: Machine) -> None:
        _library()

    def open(self, target: Target, wanted: frozenset[str]) -> PsutilSource:
        return PsutilSource(target, wanted)


class _Member:
    """A process of the job, as last read; `cpu` is None while nothing could be read of it."""

    __slots__ = (
        "base", "born", "children_cpu", "cmd", "cpu", "ended", "parent",
        "process", "rss", "rss_peak", "since", "zombie",
    )  # fmt: skip

    def __init__(self, process: Process, born: float) -> None:
        self.process = process
        self.born = born
        self.parent = 0
        self.zombie = False
        self.cmd = ""
        self.cpu: float | None = None
        self.children_cpu = 0.0  # of the children it waited for; always 0 on macOS
        self.base = 0.0  # CPU time of its own before the measurement began
        self.rss = self.rss_peak = 0
        self.since = 0.0
        self.ended: float | None = None

    @property
    def identity(self) -> Identity:
        return Identity(self.process.pid, round(self.born * TICKS_PER_SECOND))

    def account(self) -> Account:
        children = round(1000 * self.children_cpu)
        used = round(1000 * (self.cpu or 0.0)) + children
        # A parent's count of its children's time shows whether it took over the time of a child.
        return Account(self.parent, used, children, (used,))

    def use(self, lived: float) -> ProcessUse:
        """The usage of the process. If it has not ended, its time counts until `lived`."""
        seconds = max((lived if self.ended is None else self.ended) - self.since, 0.0)
        cpu = max((self.cpu or 0.0) - self.base, 0.0)
        return ProcessUse(self.identity, self.cmd, round(cpu, 2), self.rss_peak, round(seconds, 2))


class PsutilSource:
    """Follows the process tree; if no process of the job ran, it reads nothing again."""

    def __init__(self, target: Target, wanted: frozenset[str]) -> None:
        self._psutil = _library()
        self._target = target
        self._wants_pss = PSS_TOTAL.key in wanted
        self._allowance = Allowance(0.01, 0.06)
        self._pss_cost = 0.0
        self._members: dict[Process, _Member] = {}
        self._ended = EndedProcesses()
        self._ledger = Ledger()
        self._shepherd = Account(0, 0, 0, (0,))
        try:
            self._root: Process = self._psutil.Process(target.root)
            # On Linux, psutil's start times are off by up to a second, all by the same amount:
            # the job's process, which has just started, shows by how much.
            self._skew = 0.0 if target.root_is_job else time.time() - self._psutil.Process(target.main).create_time()
        except self._psutil.Error as error:
            raise NoData(f"psutil: {error}") from None
        self._lived = before = time.monotonic()  # every member that has not ended was alive then
        self._update_processes()
        # Counted from here: a job that already runs may have used much.
        self._base = self._milliseconds
        self._rate = CpuPercent(before)
        for member in self._members.values():
            member.since, member.base = self._lived, member.cpu or 0.0

    def read(self, moment: Moment) -> Readings:
        return self._read_all(quiet=moment.quiet)

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self._read_all(quiet=False)

    def _read_all(self, *, quiet: bool) -> Readings:
        before = time.monotonic()
        if quiet:
            self._lived = before  # no process of the job ran: none ended
        else:
            self._update_processes()
        seconds = (self._milliseconds - self._base) / 1000
        readings: Readings = {CPU.key: seconds}
        if (percent := self._rate.update(before, seconds, time.monotonic())) is not None:
            readings[CPU_PERCENT.key] = percent
        alive = [member for member in self._members.values() if not member.zombie]
        if alive:
            readings[RSS_TOTAL.key] = [member.rss for member in alive]
        if self._wants_pss and (pss := self._pss(alive)):
            readings[PSS_TOTAL.key] = pss
        return readings

    def _update_processes(self) -> None:
        """Find the processes of the job, and read them all, parents first."""
        present = {process: self._member(process) for process in self._processes()}
        former = list(self._members.values())
        # A process that is reaped after its parent was read, but before it is read itself, is in neither reading:
        # then all are read again.
        for _ in range(_PASSES):
            self._read_shepherd()
            vanished = [process for process, member in present.items() if not self._read(member)]
            former += [present.pop(process) for process in vanished]
            if not vanished:
                break
        self._members = present
        self._note_times([member for member in former if member.cpu is not None])
        shepherd = {} if self._target.root_is_job else {Identity(self._target.root, 0): self._shepherd}
        accounts = {member.identity: member.account() for member in present.values()}
        (self._milliseconds,) = self._ledger.update({**shepherd, **accounts}) or (0,)

    def _member(self, process: Process) -> _Member:
        if process in self._members:
            return self._members.pop(process)
        try:
            return _Member(process, process.create_time())
        except self._psutil.Error:
            return _Member(process, time.time())

    def _note_times(self, former: list[_Member]) -> None:
        """Set the start of new processes, and the end of those that have ended."""
        now, wall = time.monotonic(), time.time()
        for member in (*self._members.values(), *former):
            if not member.since:
                # It is new since the last look.
                age = wall - member.born - self._skew
                member.since = min(max(now - age, self._lived), now)
        zombies = [member for member in self._members.values() if member.zombie]
        ended = [member for member in (*zombies, *former) if member.ended is None]
        # A shepherd reports the end of its child at once.
        main = None if self._target.root_is_job else self._target.main
        announced = any(member.process.pid == main for member in ended)
        for member in ended:
            member.ended = estimate_end(max(self._lived, member.since), now, announced=announced)
        for member in former:
            self._ended.add(member.use(now))
        self._lived = now

    def _processes(self) -> list[Process]:
        processes: dict[Process, None] = dict.fromkeys([self._root] if self._target.root_is_job else [])
        processes |= dict.fromkeys(self._below(self._root))
        # Without a subreaper (macOS), orphans are not below the root any more: members stay members.
        for member in list(self._members.values()):
            if member.process not in processes and member.process.is_running():
                processes |= dict.fromkeys([member.process, *self._below(member.process)])
        return list(processes)

    def _below(self, process: Process) -> list[Process]:
        try:
            return process.children(recursive=True)
        except self._psutil.Error:
            return []  # it ended

    def _read_shepherd(self) -> None:
        """Read the CPU time of the processes that a shepherd waited for; the shepherd itself is not part of the job."""
        if self._target.root_is_job:
            return
        try:
            children = round(1000 * _of_children(self._root.cpu_times()))
        except self._psutil.Error:
            return
        self._shepherd = Account(0, children, children, (children,))

    def _read(self, member: _Member) -> bool:
        """Read a process again; False if it has ended: its figures are then those last read."""
        process, psutil = member.process, self._psutil
        try:
            with process.oneshot():
                member.zombie = process.status() == psutil.STATUS_ZOMBIE
                member.parent = process.ppid()
                times = process.cpu_times()
                member.cpu = max(times.user + times.system, member.cpu or 0.0)
                member.children_cpu = max(_of_children(times), member.children_cpu)
                member.rss = process.memory_info().rss
                member.rss_peak = max(member.rss_peak, member.rss)
                if not member.zombie:
                    member.cmd = self._cmd(process)
        except psutil.ZombieProcess:
            member.zombie = True
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            pass  # another user's process, on macOS: a member without figures
        return True

    def _cmd(self, process: Process) -> str:
        if process.pid == self._target.main and self._target.command:
            return self._target.command
        try:
            words = process.cmdline()
        except self._psutil.AccessDenied:
            words = []
        line = " ".join(self._target.redaction.words(words)) or f"[{process.name()}]"
        return command_text(line.encode(errors="surrogateescape"))

    def _pss(self, alive: list[_Member]) -> list[int]:
        """PSS of every process; empty if one of them cannot be read, or reading would cost too much now."""
        if not self._allowance.covers(self._pss_cost):
            return []
        began = time.monotonic()
        try:
            with self._allowance:
                return [member.process.memory_full_info().pss for member in alive]
        except (self._psutil.Error, AttributeError):
            return []
        finally:
            self._pss_cost = time.monotonic() - began

    def processes(self) -> list[ProcessUse]:
        """The costliest processes so far, the rest as one entry."""
        return self._ended.listed_with([member.use(self._lived) for member in self._members.values()])

    def live(self) -> list[ProcessUse]:
        """Every process that has not ended."""
        return [member.use(self._lived) for member in self._members.values() if not member.zombie]

    def close(self) -> None:
        return


def _of_children(times: Any) -> float:
    """The CPU time of the children that were waited for, where psutil has it."""
    return float(getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0))
