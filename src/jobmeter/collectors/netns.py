"""netns_: bytes through the interfaces of the job's own network, as the kernel counts them."""

from __future__ import annotations

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import NoData
from jobmeter.kernel.hostfs import Traffic
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.netns import NetworkNamespace
from jobmeter.model import Across, Kind, Measurement, Quality


def _counter(key: str, help: str) -> Measurement:
    # An ordinary user may not read the network after the end, and an interface may be removed before it is read.
    return Measurement(f"netns_{key}", "bytes", Kind.COUNTER, Across.LAST, Quality.AT_LEAST, help)


RX = _counter("rx_bytes", "Bytes that the job received on the interfaces of its own network, without loopback.")
TX = _counter("tx_bytes", "Bytes that the job sent on the interfaces of its own network, without loopback.")


class NetnsCollector:
    name = "netns"
    measurements = (RX, TX)
    default = frozenset((RX.key, TX.key))

    def check(self, machine: Machine) -> None:
        if not machine.has_proc():
            raise NoData("no /proc here")

    def open(self, target: Target, wanted: frozenset[str]) -> NetnsSource:
        if target.own_network:
            return NetnsSource(NetworkNamespace(target.machine, target.main), from_now=False)
        if target.container is None:
            raise NoData("the job has no network of its own: it is not a container, nor was --own-network given")
        if not target.main:
            raise NoData("no process of the container is visible here, or it has already ended")
        if not target.container.has_own_network:
            raise NoData("the container shares its network with another one")
        return NetnsSource(NetworkNamespace(target.machine, target.main), from_now=target.container.already_ran)


class NetnsSource:
    """Remembers the last counts of each interface: interfaces are removed soon after the end of a container."""

    def __init__(self, namespace: NetworkNamespace, *, from_now: bool) -> None:
        """With `from_now`, counters start at their present values."""
        self._namespace = namespace
        self._is_complete = False  # all interfaces were read after the end of the last process
        self._last: Traffic = {}
        self._before: Traffic = namespace.traffic() if from_now else {}

    def read(self, moment: Moment) -> Readings:
        try:
            traffic = self._namespace.traffic()
        except OSError:
            traffic = self._after_the_end()
            self._is_complete = bool(traffic) and traffic.keys() >= self._last.keys()
        for name, (received, sent) in traffic.items():
            last = self._last.get(name, (0, 0))
            self._last[name] = max(received, last[0]), max(sent, last[1])
        return self._totals()

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def qualities(self) -> dict[str, Quality]:
        """`exact` if no traffic can follow the last reading, and no interface was removed before it."""
        return dict.fromkeys((RX.key, TX.key), Quality.EXACT) if self._is_complete else {}

    def _after_the_end(self) -> Traffic:
        try:
            return self._namespace.last_traffic()
        except OSError:
            return {}  # only root may read it

    def _totals(self) -> Readings:
        if not self._last:
            return {}  # no network at all
        totals = [sum(each[way] for each in self._last.values()) for way in (0, 1)]
        before = [sum(each[way] for each in self._before.values()) for way in (0, 1)]
        return {RX.key: max(totals[0] - before[0], 0), TX.key: max(totals[1] - before[1], 0)}

    def close(self) -> None:
        self._namespace.close()
