"""The processes of a job one by one: all that run, and the costliest of those that ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from jobmeter.collectors.contract import ProcessUse
from jobmeter.kernel import procfs
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity, Stat
from jobmeter.kernel.tree import Process

LISTED = 20
_FEW = 3 * LISTED


class EndedProcesses:
    """The processes that ended: the costliest of them, and the rest as a sum."""

    def __init__(self) -> None:
        self._costliest: list[ProcessUse] = []
        self._rest: list[ProcessUse] = []

    def add(self, use: ProcessUse) -> None:
        self._costliest.append(use)
        if len(self._costliest) >= 4 * LISTED:
            self._costliest.sort(key=_cost, reverse=True)
            self._rest = [_together([*self._rest, *self._costliest[LISTED:]])]
            del self._costliest[LISTED:]

    def listed_with(self, living: list[ProcessUse]) -> list[ProcessUse]:
        """The costliest first, ended or not; the rest as one last entry with pid 0."""
        everyone = sorted([*self._costliest, *living], key=_cost, reverse=True)
        rest = [*self._rest, *everyone[LISTED:]]
        return everyone[:LISTED] + ([_together(rest)] if rest else [])


def estimate_end(last_alive: float, first_absent: float, *, announced: bool = False) -> float:
    """The estimated end of a process that was alive at `last_alive` and had ended at `first_absent`.

    The kernel does not record when a process ends. If the meter chose both moments, the end may lie
    anywhere between them: the middle is at most half the gap off, and right on average. With `announced`, the
    later moment was caused by the end of the main process, which often ends because the last of its children
    did: then the later moment is the better estimate.
    """
    return first_absent if announced else (last_alive + first_absent) / 2


class _Entry:
    __slots__ = ("base", "cmd", "comm", "ended", "process", "readings", "rss_peak", "since", "stat")

    def __init__(self, process: Process, since: float) -> None:
        self.process = process
        self.stat: Stat | None = None  # as of the last reading
        self.readings = 0  # the number of readings at which it had done something, up to two
        self.comm = b""
        self.cmd = ""
        self.rss_peak = 0
        self.since = since
        self.ended: float | None = None
        self.base = 0  # ticks used before the measurement began


def _boot_time() -> float:
    """Seconds since boot, the clock of the start times of processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Roster:
    """The processes of one job. Its size is bounded by those that run: of ended ones it has the costliest and a sum.

    Times and CPU time are those of the measurement: what a process did before the measurement began is left out.
    """

    def __init__(
        self,
        machine: Machine,
        names: dict[int, str],
        *,
        announced: int | None = None,
        redact: Callable[[list[str]], list[str]] = list,
        clock: Callable[[], float] = _boot_time,
    ) -> None:
        """`names` are command lines by pid that need not be read; the end of pid `announced` is reported as it happens.

        `redact` is applied to command lines that are read.
        """
        self._machine = machine
        self._names = names
        self._announced = announced
        self._redact = redact
        self._clock = clock
        self._began = self._lived = clock()  # all in `_live` that have not ended were alive at `_lived`
        self._live: dict[Identity, _Entry] = {}
        self._ended = EndedProcesses()

    def begin(self, present: list[Process]) -> None:
        """Add processes that already run: what they used so far is not counted."""
        self.update(present, [])
        for entry in self._live.values():
            entry.base = entry.process.stat.user + entry.process.stat.system

    def nothing_ran(self) -> None:
        """Note that no process of the job ran since the last reading: none ended."""
        self._lived = self._clock()

    def update(self, present: list[Process], vanished: list[Process]) -> None:
        """Take the present processes, zombies included, and those that vanished since the last reading."""
        now = self._clock()
        removed = [entry for process in vanished if (entry := self._live.pop(process.identity, None)) is not None]
        ended = [entry for entry in removed if entry.ended is None]
        for process in present:
            entry = self._live.get(process.identity)
            stat = process.stat
            if entry is not None and entry.stat is stat:
                continue
            if entry is None:
                since = max(stat.start / TICKS_PER_SECOND, self._began)
                entry = self._live[process.identity] = _Entry(process, since)
            entry.stat = stat
            if stat.rss > entry.rss_peak:
                entry.rss_peak = stat.rss
            if stat.comm != entry.comm:  # new, or it executed another program
                entry.comm, entry.cmd = stat.comm, self._read_cmd(process, few=len(self._live) <= _FEW)
            elif entry.cmd.startswith("[") and stat.user + stat.system > 0:
                entry.cmd = self._read_cmd(process, few=True)
            elif entry.readings == 1 and process.holds_memory and len(self._live) <= _FEW:
                # A fork may have executed the same program with other arguments: the name does not show that.
                words = self._read_cmd(process, few=True)
                entry.cmd = entry.cmd if words.startswith("[") else words  # it may have just ended
            entry.readings += entry.readings < 2
            if entry.ended is None and not process.alive:
                ended.append(entry)
        announced = any(entry.process.identity.pid == self._announced for entry in ended)
        for entry in ended:
            entry.ended = estimate_end(max(self._lived, entry.since), now, announced=announced)
        for entry in removed:
            self._ended.add(self._use(entry))
        self._lived = now

    def _read_cmd(self, process: Process, *, few: bool) -> str:
        """The command line; if there are many processes, and this one has used no CPU time so far, its name."""
        pid = process.identity.pid
        if pid in self._names:
            return self._names[pid]
        try:
            if not few and not process.stat.user + process.stat.system:
                return procfs.parse_cmdline(b"", process.stat.comm)
            return procfs.read_cmdline(self._machine, pid, process.stat.comm, self._redact)
        except OSError:
            return procfs.parse_cmdline(b"", process.stat.comm)

    def cmd(self, process: Process) -> str:
        return self._live[process.identity].cmd

    def live(self) -> list[ProcessUse]:
        """Every process that has not ended."""
        # Any thread may call this.
        return [self._use(entry) for entry in list(self._live.values()) if entry.ended is None]

    def listed(self) -> list[ProcessUse]:
        """The costliest first; the rest as one last entry with pid 0."""
        return self._ended.listed_with([self._use(entry) for entry in self._live.values()])

    def _use(self, entry: _Entry) -> ProcessUse:
        stat = entry.process.stat
        until = self._lived if entry.ended is None else entry.ended
        return ProcessUse(
            entry.process.identity,
            entry.cmd,
            (stat.user + stat.system - entry.base) / TICKS_PER_SECOND,
            entry.rss_peak,
            round(max(until - entry.since, 0.0), 2),
        )


def _together(uses: list[ProcessUse]) -> ProcessUse:
    count = sum(use.together for use in uses)
    return ProcessUse(
        Identity(0, 0),
        f"{count} more",
        round(sum(use.cpu_seconds for use in uses), 2),
        max(use.rss_peak_bytes for use in uses),
        round(sum(use.seconds for use in uses), 2),
        count,
    )


def _cost(use: ProcessUse) -> tuple[float, int]:
    return use.cpu_seconds, use.rss_peak_bytes
