"""ps_: the processes of the job's tree, as the `ps` program shows them on any Unix."""

from __future__ import annotations

import time
from collections.abc import Hashable

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.growth import Growth, Sight
from jobmeter.collectors.rate import SHORTEST_SPAN
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import printable
from jobmeter.kernel.pslist import ListedTree, Row, read_ps
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
    "What processes were doing: R running, S sleeping, D or U waiting for a disk, I idle, T stopped.",
)  # fmt: skip
CPU = Measurement(
    "ps_cpu_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "CPU time of the processes that were seen, each as last seen; on Linux in whole seconds.",
)  # fmt: skip
PDCPU = _gauge(
    "pdcpu", "percent", Across.SUM, "CPU in use since the last look, or since birth if there was none; 100 is one core."
)._replace(gauge=Gauge.RATE)
CMD = Measurement("ps_cmd", "text", Kind.LABEL, Across.LAST, Quality.SAMPLED, "Command lines.")

_TICKS_OF_A_RATE = 4
"""Whole seconds of CPU time over whole seconds: a rate over so many of them is right to within a quarter."""


class PsCollector:
    name = "ps"
    measurements = (RSS, RSS_TOTAL, VSZ, VSZ_TOTAL, PMEM, PMEM_TOTAL, ETIME, STAT, CPU, PDCPU, CMD)
    default = frozenset(m.key for m in (RSS_TOTAL, CPU, PDCPU))

    def check(self, machine: Machine) -> None:
        read_ps()

    def open(self, target: Target, wanted: frozenset[str]) -> PsSource:
        return PsSource(target)


class PsSource:
    """Follows the tree; while no process of it ran, `ps` is not run again."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tree = ListedTree(target.root)
        self._looked = 0.0
        self._rows: dict[Hashable, Row] = {}
        self._look()
        if not self._rows:
            raise NoData(f"there is no process {target.root}")
        tick = 0.01 if any(row.hundredths for row in self._rows.values()) else 1.0
        self._growth = Growth(
            self._looked,
            self._sights(),
            shortest=max(_TICKS_OF_A_RATE * tick, SHORTEST_SPAN),
            youngest=_TICKS_OF_A_RATE,  # ages are in whole seconds everywhere
        )

    def read(self, moment: Moment) -> Readings:
        if not moment.quiet:
            self._look()
        self._growth.update(self._looked if not moment.quiet else time.monotonic(), self._sights())
        return self._readings()

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def _look(self) -> None:
        self._tree.refresh()
        self._looked = time.monotonic()
        self._rows = {(pid, self._tree.births[pid]): row for pid, row in self._tree.members.items()}
        if self._target.root_is_job and self._tree.root is not None:
            self._rows[(self._target.root, 0)] = self._tree.root

    def _sights(self) -> dict[Hashable, Sight]:
        return {who: Sight(row.cpu, row.age) for who, row in self._rows.items()}

    def _readings(self) -> Readings:
        readings: Readings = {CPU.key: self._growth.seconds()}
        living = {who: row for who, row in self._rows.items() if row.alive}
        if not living:
            return readings
        rows = living.values()
        rss, vsz, pmem = [row.rss for row in rows], [row.vsz for row in rows], [row.pmem for row in rows]
        readings |= {RSS.key: rss, RSS_TOTAL.key: rss, VSZ.key: vsz, VSZ_TOTAL.key: vsz}
        readings |= {PMEM.key: pmem, PMEM_TOTAL.key: pmem}
        readings[STAT.key] = [row.state for row in rows]
        since = time.monotonic() - self._looked
        readings[ETIME.key] = [round(row.age + since, 2) for row in rows if row.age is not None]
        readings[CMD.key] = [printable(row.command.encode()) for row in rows]
        if (percent := self._growth.percent(list(living))) is not None:
            readings[PDCPU.key] = percent
        return readings

    def close(self) -> None:
        return
