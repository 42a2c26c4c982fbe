"""psutil_: the processes of the job's tree, through the psutil library; for machines without /proc."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Target
from jobmeter.collectors.growth import Growth, Sight
from jobmeter.collectors.rate import SHORTEST_SPAN
from jobmeter.collectors.roster import Dead
from jobmeter.errors import NoData
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity, printable
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
    "psutil_cpu_percent", "percent", Kind.GAUGE, Across.SUM, Quality.SAMPLED,
    "CPU in use since the last look, or since birth if there was none; 100 is one core.", Gauge.RATE,
)  # fmt: skip
CPU = Measurement(
    "psutil_cpu_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "CPU time of the processes that were seen, each as last seen.",
)  # fmt: skip


def _library() -> Any:
    try:
        import psutil
    except ImportError as error:
        raise NoData(f"psutil cannot be imported: {error}. Install it: pip install psutil") from None
    return psutil


class PsutilCollector:
    name = "psutil"
    measurements = (RSS_TOTAL, PSS_TOTAL, CPU_PERCENT, CPU)
    # PSS is dear to read, and where psutil is the usual source there is none.
    default = frozenset(m.key for m in (RSS_TOTAL, CPU_PERCENT, CPU))

    def check(self, machine: Machine) -> None:
        _library()

    def open(self, target: Target, wanted: frozenset[str]) -> PsutilSource:
        return PsutilSource(target, wanted)


class _Member:
    """A process of the job, as last seen."""

    __slots__ = ("age", "alive", "cmd", "cpu", "process", "rss", "rss_peak")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.alive = True
        self.cmd = ""
        self.cpu: float | None = None
        self.rss = self.rss_peak = 0
        self.age = 0.0

    def use(self) -> ProcessUse:
        identity = Identity(self.process.pid, round(self.process.create_time() * TICKS_PER_SECOND))
        return ProcessUse(identity, self.cmd, round(self.cpu or 0.0, 2), self.rss_peak, round(self.age, 2))


class PsutilSource:
    """Follows the tree; while no process of it ran, nothing is read again."""

    def __init__(self, target: Target, wanted: frozenset[str]) -> None:
        self._psutil = _library()
        self._target = target
        self._wants_pss = PSS_TOTAL.key in wanted
        self._allowance = Allowance(0.01, 0.06)
        self._pss_cost = 0.0
        self._members: dict[Hashable, _Member] = {}
        self._dead = Dead()
        try:
            self._root: Process = self._psutil.Process(target.root)
            # psutil's birthdays on Linux are off by up to a second, all by the same:
            # the job's process, born just now, tells by how much.
            self._skew = 0.0 if target.root_is_job else time.time() - self._psutil.Process(target.main).create_time()
        except self._psutil.Error as error:
            raise NoData(f"psutil: {error}") from None
        self._look()
        self._growth = Growth(time.monotonic(), self._sights(), shortest=SHORTEST_SPAN, youngest=SHORTEST_SPAN)

    def read(self, moment: Moment) -> Readings:
        if not moment.quiet:
            self._look()
        self._growth.update(time.monotonic(), self._sights())
        readings: Readings = {CPU.key: self._growth.seconds()}
        alive = {who: member for who, member in self._members.items() if member.alive}
        if alive:
            readings[RSS_TOTAL.key] = [member.rss for member in alive.values()]
        if (percent := self._growth.percent(list(alive))) is not None:
            readings[CPU_PERCENT.key] = percent
        if self._wants_pss and (pss := self._pss(list(alive.values()))):
            readings[PSS_TOTAL.key] = pss
        return readings

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def _look(self) -> None:
        """Find who belongs to the job now, and read them all."""
        present: dict[Hashable, _Member] = {}
        for process in self._processes():
            member = self._members.pop(process, None) or _Member(process)
            if self._read(member):
                present[process] = member
            elif member.cpu is not None:
                self._dead.bury(member.use())
        for member in self._members.values():
            self._dead.bury(member.use())
        self._members = present

    def _processes(self) -> list[Process]:
        found: dict[Process, None] = dict.fromkeys([self._root] if self._target.root_is_job else [])
        found |= dict.fromkeys(self._below(self._root))
        # Where nobody adopts orphans (macOS) they are no longer below the root, but were.
        for member in list(self._members.values()):
            if member.process not in found and member.process.is_running():
                found |= dict.fromkeys([member.process, *self._below(member.process)])
        return list(found)

    def _below(self, process: Process) -> list[Process]:
        try:
            return process.children(recursive=True)
        except self._psutil.Error:
            return []  # it ended

    def _read(self, member: _Member) -> bool:
        """Read it anew; False when it is gone, and left as it was when it tells no more."""
        process, psutil = member.process, self._psutil
        try:
            with process.oneshot():
                member.alive = process.status() != psutil.STATUS_ZOMBIE
                times = process.cpu_times()
                member.cpu = max(times.user + times.system, member.cpu or 0.0)
                member.rss = process.memory_info().rss
                member.rss_peak = max(member.rss_peak, member.rss)
                member.age = max(time.time() - process.create_time() - self._skew, 0.0)
                if member.alive:
                    member.cmd = self._cmd(process)
        except psutil.ZombieProcess:
            member.alive = False
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            pass  # another user's, on macOS: a member nothing is known of
        return True

    def _cmd(self, process: Process) -> str:
        if process.pid == self._target.main and self._target.command:
            return self._target.command
        try:
            words = process.cmdline()
        except self._psutil.AccessDenied:
            words = []
        return printable((" ".join(words) or f"[{process.name()}]").encode(errors="surrogateescape"))

    def _sights(self) -> dict[Hashable, Sight]:
        return {who: Sight(member.cpu, member.age) for who, member in self._members.items()}

    def _pss(self, alive: list[_Member]) -> list[int]:
        """PSS of every process; empty when one of them does not tell, or it would cost too much now."""
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
        return self._dead.listed_with(self.live())

    def live(self) -> list[ProcessUse]:
        """Every process that lives now."""
        return [member.use() for member in self._members.values()]

    def close(self) -> None:
        return
