"""bpf_: bytes that the job's sockets sent and received, if it shares the machine's network. For root, on request."""

from __future__ import annotations

import contextlib

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import NoData
from jobmeter.kernel.bpf import PacketCounter
from jobmeter.kernel.cgroup.group import Group, own_directories
from jobmeter.kernel.cgroup.members import Membership
from jobmeter.kernel.cgroup.v2 import GroupV2, create_without_controllers
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.sock_diag import socket_inodes
from jobmeter.kernel.tree import Tree
from jobmeter.model import Across, Kind, Measurement, Quality


def _counter(key: str, help: str) -> Measurement:
    return Measurement(f"bpf_{key}", "bytes", Kind.COUNTER, Across.LAST, Quality.EXACT, help)


RX = _counter("rx_bytes", "Bytes of IP packets that sockets of the job received, without loopback.")
TX = _counter("tx_bytes", "Bytes of IP packets that sockets of the job sent, without loopback.")


class BpfCollector:
    name = "bpf"
    measurements = (RX, TX)
    default = frozenset((RX.key, TX.key))

    def check(self, machine: Machine) -> None:
        group = _make_group(machine, "check-packets")
        try:
            PacketCounter(group.path).close()
        finally:
            group.remove()

    def open(self, target: Target, wanted: frozenset[str]) -> BpfSource:
        if target.own_network or target.container is not None:
            raise NoData("the job has its own network, which netns_* and container_* count")
        if target.root_is_job:
            raise NoData("packets are counted only for jobs that jobmeter starts: a socket stays in its first cgroup")
        if target.group is not None and target.group.version == 2:
            return BpfSource(target, target.group)
        group = _make_group(target.machine, f"{target.main}-packets")
        try:
            group.add(target.main)
            return BpfSource(target, group, made=group)
        except OSError as error:
            group.remove()
            raise NoData(f"{group.path}: {error.strerror}") from None
        except NoData:
            group.remove()
            raise


def _make_group(machine: Machine, name: str) -> GroupV2:
    """Make a group of the unified hierarchy, which can be mounted besides cgroup v1. Raises NoData if not allowed."""
    _, unified = own_directories(machine)
    if unified is None:
        raise NoData("counting packets needs cgroup v2, which is not mounted here")
    return create_without_controllers(unified, name)


class BpfSource:
    """Counts the packets of sockets that are made by processes in the job's own group."""

    def __init__(self, target: Target, group: Group, made: GroupV2 | None = None) -> None:
        """`made` is the group if it was made for this source: then `close` removes it."""
        self._made = made
        self._counter = PacketCounter(group.path)
        try:
            self._tree = Tree(target.machine, target.root, target.main)
        except BaseException:
            self._counter.close()
            raise
        self._membership = Membership(target.machine, {"": group.path})
        self._has_others_sockets = _has_sockets(target)

    def read(self, moment: Moment) -> Readings:
        self._tree.refresh()
        self._membership.update(self._tree.running())
        return self._totals()

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self._totals()

    def _totals(self) -> Readings:
        count = self._counter.read()
        return {RX.key: count.received, TX.key: count.sent}

    def qualities(self) -> dict[str, Quality]:
        """`at least` if a process left the group, or the job was given a socket that another process had made."""
        if self._membership.left or self._has_others_sockets:
            return dict.fromkeys((RX.key, TX.key), Quality.AT_LEAST)
        return {}

    def close(self) -> None:
        self._counter.close()
        self._tree.close()
        if self._made is not None:
            self._made.remove()


def _has_sockets(target: Target) -> bool:
    with contextlib.suppress(OSError):
        return bool(socket_inodes(target.machine, target.main))
    return True
