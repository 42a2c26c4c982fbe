"""The processes of a job one by one: all that live, and of the dead the costliest."""

from __future__ import annotations

import time

from jobmeter.collectors.contract import ProcessUse
from jobmeter.kernel import procfs
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.kernel.tree import Process

LISTED = 20
_FEW = 3 * LISTED


class Dead:
    """The processes that ended: the costliest of them, and the rest as a sum."""

    def __init__(self) -> None:
        self._costliest: list[ProcessUse] = []
        self._rest: list[ProcessUse] = []

    def bury(self, use: ProcessUse) -> None:
        self._costliest.append(use)
        if len(self._costliest) >= 4 * LISTED:
            self._costliest.sort(key=_cost, reverse=True)
            self._rest = [_together([*self._rest, *self._costliest[LISTED:]])]
            del self._costliest[LISTED:]

    def listed_with(self, living: list[ProcessUse]) -> list[ProcessUse]:
        """The costliest first, dead or alive; the rest as one last entry with pid 0."""
        everyone = sorted([*self._costliest, *living], key=_cost, reverse=True)
        rest = [*self._rest, *everyone[LISTED:]]
        return everyone[:LISTED] + ([_together(rest)] if rest else [])


class _Entry:
    __slots__ = ("cmd", "comm", "last_seen", "process", "rss_peak")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.comm = b""
        self.cmd = ""
        self.rss_peak = 0
        self.last_seen = 0.0


class Roster:
    """Bounded by the processes that live: the dead are kept as the costliest and a sum."""

    def __init__(self, machine: Machine, known: dict[int, str]) -> None:
        """`known` are command lines by pid that need not be read."""
        self._machine = machine
        self._known = known
        self._live: dict[Identity, _Entry] = {}
        self._dead = Dead()

    def update(self, present: list[Process], vanished: list[Process]) -> None:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        for process in vanished:
            entry = self._live.pop(process.identity, None)
            if entry is not None:
                self._dead.bury(_use(entry))
        for process in present:
            entry = self._live.get(process.identity)
            if entry is None:
                entry = self._live[process.identity] = _Entry(process)
            stat = process.stat
            if stat.rss > entry.rss_peak:
                entry.rss_peak = stat.rss
            if stat.comm != entry.comm:  # new, or it executed another program
                entry.comm, entry.cmd = stat.comm, self._read_cmd(process, few=len(self._live) <= _FEW)
            elif entry.cmd.startswith("[") and stat.user + stat.system > 0:
                entry.cmd = self._read_cmd(process, few=True)
            entry.last_seen = now

    def _read_cmd(self, process: Process, *, few: bool) -> str:
        """The command line; of many processes that did nothing so far, the name will do."""
        pid = process.identity.pid
        if pid in self._known:
            return self._known[pid]
        try:
            if not few and not process.stat.user + process.stat.system:
                return procfs.parse_cmdline(b"", process.stat.comm)
            return procfs.read_cmdline(self._machine, pid, process.stat.comm)
        except OSError:
            return procfs.parse_cmdline(b"", process.stat.comm)

    def cmd(self, process: Process) -> str:
        return self._live[process.identity].cmd

    def live(self) -> list[ProcessUse]:
        return [_use(entry) for entry in list(self._live.values())]  # any thread may ask

    def listed(self) -> list[ProcessUse]:
        """The costliest first; the rest as one last entry with pid 0."""
        return self._dead.listed_with(self.live())


def _use(entry: _Entry) -> ProcessUse:
    stat = entry.process.stat
    return ProcessUse(
        entry.process.identity,
        entry.cmd,
        (stat.user + stat.system) / TICKS_PER_SECOND,
        entry.rss_peak,
        round(max(entry.last_seen - stat.start / TICKS_PER_SECOND, 0.0), 2),
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
