"""ps_: the processes of the job's tree, as the `ps` program shows them on any Unix."""

from __future__ import annotations

import time

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.errors import NoData
from jobmeter.kernel.ledger import Account, Ledger
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, command_text
from jobmeter.kernel.pslist import ListedTree, PsLine, read_ps
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality


def _gauge(key: str, unit: str, across: Across, help: str) -> Measurement:
    return Measurement(f"ps_{key}", unit, Kind.GAUGE, across, Quality.SAMPLED, help)


RSS = _gauge("rss", "bytes", Across.MAX, "Resident memory of the largest process.")
RSS_TOTAL = _gauge(
    "rss_total", "bytes", Across.SUM, "Resident memory summed over processes: what they share counts in each."
)
VSZ = _gauge("vsz", "bytes", Across.MAX, "Address space of the process that has the most of it.")
VSZ_TOTAL = _gauge("vsz_total", "bytes", Across.SUM, "Address space, used or not.")
PMEM = _gauge("pmem", "percent", Across.MAX, "Share of the machine's memory that the largest process holds.")
PMEM_TOTAL = _gauge("pmem_total", "percent", Across.SUM, "Share of the machine's memory, summed over processes.")
ETIME = _gauge("etime", "seconds", Across.MAX, "Age of the oldest process.")
STAT = Measurement(
    "ps_stat", "text", Kind.CATEGORY, Across.TALLY, Quality.SAMPLED,
    "What processes were doing: R running, S sleeping, D or U waiting for a disk, I idle, Z ended, T stopped.",
)  # fmt: skip
CPU = Measurement(
    "ps_cpu_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "CPU time of the tree, on Linux to the second; of processes that were not waited for, as last read.",
)  # fmt: skip
PDCPU = _gauge(
    "pdcpu", "percent", Across.LAST,
    "CPU in use, as a rate of ps_cpu_seconds, on Linux over four seconds or more; 100 is one core.",
)._replace(gauge=Gauge.RATE)  # fmt: skip
CMD = Measurement("ps_cmd", "text", Kind.LABEL, Across.LAST, Quality.SAMPLED, "Command lines.")

_GROWN_UP = 1.0
"""The age in seconds from which `ps` on Linux can show CPU time of a process: it counts whole seconds."""
_PASSES = 4
"""The most runs of `ps` per sample: it is run again while processes end."""


class PsCollector:
    name = "ps"
    measurements = (RSS, RSS_TOTAL, VSZ, VSZ_TOTAL, PMEM, PMEM_TOTAL, ETIME, STAT, CPU, PDCPU, CMD)
    default = frozenset(m.key for m in (RSS_TOTAL, CPU, PDCPU))

    def check(self, machine: Machine) -> None:
        read_ps()

    def open(self, target: Target, wanted: frozenset[str]) -> PsSource:
        return PsSource(target)


class PsSource:
    """Follows the process tree; if no process of the job ran, `ps` is not run again."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tree = ListedTree(target.root)
        self._read_at = 0.0
        self._rows: dict[Identity, PsLine] = {}
        self._accounts: dict[Identity, Account] = {}
        self._ledger = Ledger()
        self._young: set[Identity] = set()  # too young for `ps` to show what they used
        self._died_young = False  # some of them ended since the last rate
        before = time.monotonic()
        self._update_processes()
        if not self._rows:
            raise NoData(f"there is no process {target.root}")
        self._base = self._milliseconds
        self._rated = 0.0
        self._rate = CpuPercent(before, tick=0.01 if self._hundredths else 1.0)

    def read(self, moment: Moment) -> Readings:
        before = time.monotonic()
        if not moment.quiet:
            self._update_processes()
        return {**self._levels(), **self._cpu(before, quiet=moment.quiet)}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        before = time.monotonic()
        self._update_processes()
        return {**self._levels(), **self._cpu(before, quiet=False)}

    def _update_processes(self) -> None:
        for _ in range(_PASSES):
            self._tree.refresh()
            # A process that is reaped after its parent was listed, but before it is listed itself, is in neither row:
            # then all are listed again.
            if not any(row.whole_cpu and not row.hundredths for row in self._tree.vanished):
                break
        self._read_at = time.monotonic()
        members = {Identity(pid, self._tree.births[pid]): row for pid, row in self._tree.members.items()}
        root = {Identity(self._target.root, 0): self._tree.root} if self._tree.root is not None else {}
        everyone = {**root, **members}
        self._rows = everyone if self._target.root_is_job else members
        self._hundredths = any(row.hundredths for row in everyone.values())
        # A shepherd is not part of the job, but on Linux it has the CPU time of all processes that it waited for.
        counted = self._rows if self._hundredths else everyone
        self._accounts = {identity: self._account(identity, row) for identity, row in counted.items()}
        (self._milliseconds,) = self._ledger.update(self._accounts) or (0,)
        self._died_young |= not self._young <= self._rows.keys()
        self._young = {identity for identity, row in self._rows.items() if row.alive and self._is_young(row)}

    def _is_young(self, row: PsLine) -> bool:
        return row.age is not None and row.age < _GROWN_UP and not row.hundredths

    def _account(self, identity: Identity, row: PsLine) -> Account:
        """The usage of a process so far. `ps` may show a process that ended with less than before, or with none."""
        before = self._accounts.get(identity)
        used = max(round(1000 * (row.cpu or 0.0)), before.used[0] if before else 0)
        if row.hundredths:
            return Account(row.ppid, used, 0, (used,))  # of the process alone: no parent takes over its time
        # The time of a parent, in whole seconds, shows whether it took over the time of a child: the sum of two times,
        # rounded down, is never less than the sum of both rounded down.
        whole = max(row.whole_cpu, before.faults if before else 0)
        return Account(row.ppid, whole, whole, (used,))

    def _cpu(self, before: float, *, quiet: bool) -> Readings:
        seconds = (self._milliseconds - self._base) / 1000
        if seconds == self._rated and (self._young or self._died_young) and not quiet:
            return {CPU.key: seconds}  # no rate: the counter did not move, but some CPU time may have been used
        percent = self._rate.update(before, seconds, time.monotonic())
        if percent is None:
            return {CPU.key: seconds}
        self._rated = seconds
        self._died_young = False
        return {CPU.key: seconds, PDCPU.key: percent}

    def _levels(self) -> Readings:
        rows = [row for row in self._rows.values() if row.alive]
        if not rows:
            return {}
        rss, vsz, pmem = [row.rss for row in rows], [row.vsz for row in rows], [row.pmem for row in rows]
        since = time.monotonic() - self._read_at
        return {
            RSS.key: rss,
            RSS_TOTAL.key: rss,
            VSZ.key: vsz,
            VSZ_TOTAL.key: vsz,
            PMEM.key: pmem,
            PMEM_TOTAL.key: pmem,
            STAT.key: [row.state for row in self._rows.values() if row.alive or self._is_left(row)],
            ETIME.key: [round(row.age + since, 2) for row in rows if row.age is not None],
            CMD.key: [
                command_text(self._target.redaction.text(row.command).encode(errors="surrogateescape")) for row in rows
            ],
        }

    def _is_left(self, zombie: PsLine) -> bool:
        """Whether the job left this zombie: a shepherd keeps its own children as zombies only for a last reading."""
        return self._target.root_is_job or zombie.ppid != self._target.root

    def close(self) -> None:
        return
