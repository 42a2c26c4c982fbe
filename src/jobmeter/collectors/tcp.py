"""tcp_: bytes that TCP connections of the job's processes sent and received, if it has no network of its own."""

from __future__ import annotations

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.sock_diag import TcpConnection, read_connections, socket_inodes
from jobmeter.kernel.tree import Tree
from jobmeter.model import Across, Kind, Measurement, Quality


def _counter(key: str, help: str) -> Measurement:
    return Measurement(f"tcp_{key}", "bytes", Kind.COUNTER, Across.LAST, Quality.AT_LEAST, help)


RX = _counter("rx_bytes", "Bytes that TCP connections of the job received, loopback included, as last read of each.")
TX = _counter("tx_bytes", "Bytes that TCP connections of the job sent, loopback included, as last read of each.")


class TcpCollector:
    name = "tcp"
    measurements = (RX, TX)
    default = frozenset((RX.key, TX.key))

    def check(self, machine: Machine) -> None:
        if not machine.has_proc():
            raise NoData(f"no {machine.proc} here")
        try:
            read_connections()
        except (OSError, ValueError, AttributeError) as error:
            raise NoData(f"the kernel does not list TCP connections here: {error}") from None

    def open(self, target: Target, wanted: frozenset[str]) -> TcpSource:
        self.check(target.machine)
        if target.own_network or target.container is not None:
            raise NoData("the job has its own network, which netns_* and container_* count")
        return TcpSource(target)


class TcpSource:
    """Figures are `at least`: a connection that was opened and closed between two readings is not seen."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._machine = target.machine
        self._tree = Tree(self._machine, target.root, None if target.root_is_job else target.main)
        self._allowance = Allowance(share=0.01, at_first=0.01)
        self._last: dict[int, TcpConnection] = {}  # by inode: new sockets get new numbers
        self._before: dict[int, TcpConnection] = {}
        if target.root_is_job:
            self._update_connections()
            self._before = dict(self._last)

    def read(self, moment: Moment) -> Readings:
        if self._allowance.covers():
            with self._allowance:
                self._update_connections()
        return self._totals()

    def peek(self, moment: Moment) -> Readings:
        """The same as `read`: short connections are seen only between samples."""
        return self.read(moment)

    def _update_connections(self) -> None:
        self._tree.refresh()
        own: set[int] = set()
        for pid in self._tree.running_pids(with_root=self._target.root_is_job):
            try:
                own |= socket_inodes(self._machine, pid)
            except OSError:
                continue  # it has ended, or is another user's
        if own:
            self._last |= {each.inode: each for each in read_connections() if each.inode in own}

    def _totals(self) -> Readings:
        received = sum(each.received for each in self._last.values())
        sent = sum(each.sent for each in self._last.values())
        received -= sum(each.received for each in self._before.values())
        sent -= sum(each.sent for each in self._before.values())
        return {RX.key: max(received, 0), TX.key: max(sent, 0)}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self._totals()

    def close(self) -> None:
        self._tree.close()
