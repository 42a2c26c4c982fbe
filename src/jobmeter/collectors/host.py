"""host_: the whole machine, with everything that runs on it."""

from __future__ import annotations

import time

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.errors import NoData
from jobmeter.kernel import hostfs
from jobmeter.kernel.machine import Machine
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

CPU_PERCENT = Measurement(
    "host_cpu_percent", "percent", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "CPU in use on the machine; 100 is one core.", Gauge.RATE,
)  # fmt: skip
MEM_USED = Measurement(
    "host_mem_used", "bytes", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "Memory of the machine that is not available to new processes.",
)  # fmt: skip
NET_RX = Measurement(
    "host_net_rx_bytes", "bytes", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "Bytes received by the machine since the job began, loopback left out.",
)  # fmt: skip
NET_TX = Measurement(
    "host_net_tx_bytes", "bytes", Kind.COUNTER, Across.LAST, Quality.EXACT,
    "Bytes sent by the machine since the job began, loopback left out.",
)  # fmt: skip
LOAD1 = Measurement(
    "host_load1", "count", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "Load average of one minute.",
)  # fmt: skip


class HostCollector:
    name = "host"
    measurements = (CPU_PERCENT, MEM_USED, NET_RX, NET_TX, LOAD1)
    default = frozenset(m.key for m in measurements)

    def check(self, machine: Machine) -> None:
        try:
            hostfs.read_cpu_time(machine)
        except (OSError, ValueError):
            raise NoData(f"no {machine.proc}/stat here") from None

    def open(self, target: Target, wanted: frozenset[str]) -> HostSource:
        self.check(target.machine)
        return HostSource(target.machine)


class HostSource:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._rate: CpuPercent | None = None
        self._network_at_first = self._network()

    def _network(self) -> tuple[int, int] | None:
        try:
            return hostfs.read_network(self._machine)
        except (OSError, ValueError):
            return None

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def read(self, moment: Moment) -> Readings:
        readings: Readings = {
            MEM_USED.key: hostfs.read_memory_used(self._machine),
            LOAD1.key: hostfs.read_load1(self._machine),
        }
        busy = hostfs.read_cpu_time(self._machine).busy
        if self._rate is None:
            self._rate = CpuPercent(moment.monotonic, busy)
        elif (percent := self._rate.update(moment.monotonic, busy, time.monotonic())) is not None:
            readings[CPU_PERCENT.key] = percent
        network = self._network()
        if network is not None and self._network_at_first is not None:
            readings[NET_RX.key] = network[0] - self._network_at_first[0]
            readings[NET_TX.key] = network[1] - self._network_at_first[1]
        return readings

    def close(self) -> None:
        return
