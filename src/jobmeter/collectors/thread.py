"""thread_: the threads of the job one by one. Only on request: every one of them is read at every sample."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import NoData
from jobmeter.kernel import procfs
from jobmeter.kernel.machine import Machine, read_bytes
from jobmeter.kernel.numa import node_of_cpus
from jobmeter.kernel.procfs import Identity, ThreadReading
from jobmeter.kernel.tree import Process, Tree
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

if TYPE_CHECKING:
    from jobmeter.record.types import ThreadEntry

LISTED = 20

BUSIEST = Measurement(
    "thread_busiest_percent", "percent", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "CPU of the busiest thread since the reading before; at 100 it keeps one core busy, and more cores do not help.",
    Gauge.RATE,
)  # fmt: skip
MIGRATIONS = Measurement(
    "thread_migrations", "count", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "How often a thread was found on another core than at the reading before.",
)  # fmt: skip
NODES = Measurement(
    "thread_nodes", "count", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "NUMA nodes that threads of the job were on.",
)  # fmt: skip


class ThreadCollector:
    name = "thread"
    measurements = (BUSIEST, MIGRATIONS, NODES)
    default = frozenset(m.key for m in measurements)

    def check(self, machine: Machine) -> None:
        try:
            read_bytes(f"{machine.proc}/self/schedstat")
        except OSError:
            raise NoData("this kernel does not count the time of threads (schedstat)") from None

    def open(self, target: Target, wanted: frozenset[str]) -> ThreadSource:
        self.check(target.machine)
        return ThreadSource(target)


class _Thread:
    """What one thread did during the measurement."""

    def __init__(self, pid: int, reading: ThreadReading, base: ThreadReading | None) -> None:
        self.pid = pid
        self.base = base  # as the measurement began; None if the thread is younger
        self.last = reading
        self.cores: dict[int, None] = {}
        self.migrations = 0
        self.since = self.read_at = time.monotonic()
        self.is_present = True

    def update(self, reading: ThreadReading, now: float) -> float:
        """Take another reading; return the CPU use of the thread in percent since the one before."""
        grown, elapsed = reading.run_ns - self.last.run_ns, now - self.read_at
        self.migrations += reading.core != self.last.core
        self.cores[reading.core] = None
        self.last, self.read_at, self.is_present = reading, now, True
        return 100 * grown / 1e9 / elapsed if elapsed > 0 else 0.0

    @property
    def cpu_seconds(self) -> float:
        return (self.last.run_ns - (self.base.run_ns if self.base else 0)) / 1e9

    @property
    def run_delay_seconds(self) -> float:
        return (self.last.wait_ns - (self.base.wait_ns if self.base else 0)) / 1e9


class ThreadSource:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._machine = target.machine
        self._tree = Tree(self._machine, target.root, None if target.root_is_job else target.main)
        self._nodes = node_of_cpus(self._machine)
        self._threads: dict[tuple[Identity, int], _Thread] = {}
        self._ended: list[_Thread] = []
        self._forgotten = 0  # threads that ended and are not listed
        self._migrations = 0
        self._update_threads(is_first=target.root_is_job)

    def read(self, moment: Moment) -> Readings:
        busiest = None if moment.quiet else self._update_threads()
        nodes = {self._nodes.get(thread.last.core, 0) for thread in self._threads.values()}
        readings: Readings = {MIGRATIONS.key: self._migrations}
        if busiest is not None:
            readings[BUSIEST.key] = round(busiest, 2)
        if nodes:
            readings[NODES.key] = len(nodes)
        return readings

    def _update_threads(self, *, is_first: bool = False) -> float | None:
        """Read every thread; return the CPU use of the busiest, in percent."""
        self._tree.refresh()
        for thread in self._threads.values():
            thread.is_present = False
        rates = [
            rate
            for process in self._tree.running(with_root=self._target.root_is_job)
            for rate in self._read(process, is_first=is_first)
        ]  # fmt: skip
        for key in [key for key, thread in self._threads.items() if not thread.is_present]:
            self._end(self._threads.pop(key))
        return max(rates, default=None)

    def _read(self, process: Process, *, is_first: bool) -> list[float]:
        rates, pid, now = [], process.identity.pid, time.monotonic()
        try:
            ids = procfs.thread_ids(self._machine, pid)
        except OSError:
            return []  # it has ended
        for thread_id in ids:
            try:
                reading = procfs.read_thread(self._machine, pid, thread_id)
            except (OSError, ValueError):
                continue
            key = process.identity, thread_id
            thread = self._threads.get(key)
            # Thread ids are reused: one with less CPU time than before is another thread.
            if thread is not None and reading.run_ns < thread.last.run_ns:
                self._end(self._threads.pop(key))
                thread = None
            if thread is None:
                thread = self._threads[key] = _Thread(pid, reading, reading if is_first else None)
            before = thread.migrations
            rates.append(thread.update(reading, now))
            self._migrations += thread.migrations - before
        return rates

    def _end(self, thread: _Thread) -> None:
        self._ended.append(thread)
        if len(self._ended) >= 4 * LISTED:
            self._ended.sort(key=lambda one: -one.cpu_seconds)
            self._forgotten += len(self._ended) - LISTED
            del self._ended[LISTED:]

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return {MIGRATIONS.key: self._migrations}

    def threads(self) -> list[ThreadEntry]:
        """The busiest first; the last entry, without an id, counts those that are not listed."""
        every = sorted([*self._threads.values(), *self._ended], key=lambda one: -one.cpu_seconds)
        entries = [self._entry(thread) for thread in every[:LISTED]]
        others = len(every[LISTED:]) + self._forgotten
        return [*entries, {"threads": others}] if others else entries

    def _entry(self, thread: _Thread) -> ThreadEntry:
        entry: ThreadEntry = {
            "pid": thread.pid,
            "tid": thread.last.thread,
            "name": thread.last.name,
            "cpu_seconds": round(thread.cpu_seconds, 6),
            "run_delay_seconds": round(thread.run_delay_seconds, 6),
            "cores": sorted(thread.cores),
            "migrations": thread.migrations,
        }
        if self._nodes:
            entry["nodes"] = sorted({self._nodes[core] for core in thread.cores if core in self._nodes})
        return entry

    def close(self) -> None:
        self._tree.close()
