"""container_: what the container runtime reports through its API."""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import JobmeterError, NoData
from jobmeter.kernel.machine import Machine
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality


def _counter(key: str, unit: str, help: str) -> Measurement:
    # A container's stats are not available after it ends: what was used after the last answer is not in them.
    return Measurement(f"container_{key}", unit, Kind.COUNTER, Across.LAST, Quality.AT_LEAST, help)


def _gauge(key: str, unit: str, quality: Quality, help: str) -> Measurement:
    return Measurement(f"container_{key}", unit, Kind.GAUGE, Across.LAST, quality, help)


CPU = _counter("cpu_seconds", "seconds", "CPU time of the container, as its container runtime reports it.")
MEM_CURRENT = _gauge("mem_current", "bytes", Quality.SAMPLED, "Memory charged to the container, page cache included.")
MEM_PEAK = _gauge(
    "mem_peak",
    "bytes",
    Quality.AT_LEAST,
    "Highest memory charged to the container; reported by Docker on cgroup v1 alone.",
)._replace(gauge=Gauge.MARK)
NET_RX = _counter("net_rx_bytes", "bytes", "Bytes that the container received on its own networks.")
NET_TX = _counter("net_tx_bytes", "bytes", "Bytes that the container sent on its own networks.")
BLOCK_READ = _counter("block_read_bytes", "bytes", "Bytes that the container read from block devices.")
BLOCK_WRITE = _counter("block_write_bytes", "bytes", "Bytes that the container wrote to block devices.")
PIDS = _gauge("pids", "count", Quality.SAMPLED, "Processes and threads in the container.")

_COUNTERS = {CPU.key, NET_RX.key, NET_TX.key, BLOCK_READ.key, BLOCK_WRITE.key}


class ContainerStats(NamedTuple):
    """One answer of a container runtime, in base units; None is "not reported"."""

    cpu_seconds: float | None = None
    mem_current: int | None = None
    mem_peak: int | None = None
    net_rx_bytes: int | None = None
    net_tx_bytes: int | None = None
    block_read_bytes: int | None = None
    block_write_bytes: int | None = None
    pids: int | None = None

    def of_network(self) -> ContainerStats:
        """Only the figures of the network: the others come from a cgroup, and this container has none of its own."""
        return ContainerStats(net_rx_bytes=self.net_rx_bytes, net_tx_bytes=self.net_tx_bytes)

    def by_key(self) -> dict[str, float]:
        """Key of the measurement → value, without those that are not reported."""
        return {f"container_{name}": value for name, value in self._asdict().items() if value is not None}


class ContainerHandle(Protocol):
    """What a collector needs to know of a container."""

    already_ran: bool  # before the measurement: counters start at their present values
    has_own_network: bool  # it does not share that of another container

    def stats(self) -> ContainerStats | None:
        """Its stats now; None when the container does not run. It may take a second or more."""
        ...


class ContainerCollector:
    name = "container"
    measurements = (CPU, MEM_CURRENT, MEM_PEAK, NET_RX, NET_TX, BLOCK_READ, BLOCK_WRITE, PIDS)
    default = frozenset(m.key for m in measurements)

    def check(self, machine: Machine) -> None:
        from importlib.util import find_spec

        if find_spec("docker") is None:
            raise NoData("needs the package `docker`: pip install 'jobmeter[docker]'")

    def open(self, target: Target, wanted: frozenset[str]) -> ContainerSource:
        if target.container is None:
            raise NoData("the job is not a container")
        return ContainerSource(target.container)


class ContainerSource:
    """Reads in a separate thread, so that a slow container runtime delays no other source.

    A reading returns the last answer, and requests the next one.
    """

    def __init__(self, container: ContainerHandle) -> None:
        self._container = container
        self._requested = threading.Event()
        self._closed = False
        self._answer: dict[str, float] = {}
        self._error: JobmeterError | None = None
        self._base: dict[str, float] | None = None if container.already_ran else {}
        self._requested.set()
        threading.Thread(target=self._run, name="jobmeter-container", daemon=True).start()

    def _run(self) -> None:
        while self._requested.wait() and not self._closed:
            self._requested.clear()
            try:
                stats = self._container.stats()
            except JobmeterError as error:
                self._error = error
                continue
            if stats is not None:
                self._store(stats.by_key())

    def _store(self, answer: dict[str, float]) -> None:
        if self._base is None:
            self._base = {key: value for key, value in answer.items() if key in _COUNTERS}
        base = self._base
        self._answer = {key: value - base.get(key, 0) for key, value in answer.items()}
        self._error = None

    def read(self, moment: Moment) -> Readings:
        self._requested.set()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return dict(self._answer)

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        """The counters of the last answer: for a container that has ended, container runtimes report zeros."""
        return {key: value for key, value in self._answer.items() if key in _COUNTERS}

    def close(self) -> None:
        self._closed = True
        self._requested.set()


def with_container(patterns: list[str] | None) -> list[str]:
    """The patterns for a container: what is measured by default of a command, its network, and its runtime's stats."""
    patterns = patterns or []
    if all(pattern.startswith("-") for pattern in patterns):
        return ["default", "netns_*", "container_*", *patterns]
    return [*patterns, "netns_*", "container_*"] if "default" in patterns else patterns
