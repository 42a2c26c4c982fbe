"""The accounts of a container, put together from groups that come and go."""

from __future__ import annotations

import os

import pytest

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.container import ContainerGroup
from jobmeter.kernel.cgroup.group import BlockIo, Cpu, Memory
from jobmeter.kernel.cgroup.parent import create_parent, remove_empty_parents
from jobmeter.kernel.machine import Machine
from tests.parts import missing


class Fake:
    """A group that reports what the test sets, until it is gone."""

    version = 1
    path = "/fake"

    def __init__(self, cpu: float, peak: int, kills: int = 0) -> None:
        self.seconds, self.highest, self.kills = cpu, peak, kills
        self.gone = False

    def cpu(self) -> Cpu | None:
        return None if self.gone else Cpu(self.seconds, self.seconds, 0.0, 0.5)

    def cpu_nanoseconds(self) -> int | None:
        return None if self.gone else round(self.seconds * 1e9)

    def memory(self) -> Memory | None:
        return None if self.gone else Memory(self.highest, 0, 0, 0, None)

    def memory_peak(self) -> int | None:
        return None if self.gone else self.highest

    def directories(self) -> dict[str, str]:
        return {}

    def hugetlb(self) -> int | None:
        return None

    def hugetlb_peak(self) -> int | None:
        return None

    def io(self) -> BlockIo | None:
        return None if self.gone else BlockIo(round(self.seconds), 0)

    def pids_peak(self) -> int | None:
        return None if self.gone else 7

    def oom_kills(self) -> int | None:
        return None if self.gone else self.kills

    def processes(self) -> list[int]:
        if self.gone:
            raise FileNotFoundError
        return [1]

    def pressure_seconds(self, resource: str) -> float | None:
        return None

    def missed(self) -> frozenset[str]:
        return frozenset()

    def close(self) -> None: ...


def total(group: ContainerGroup) -> float:
    cpu = group.cpu()
    assert cpu is not None
    return cpu.total


def test_a_group_above_still_reports_usage_when_the_containers_own_group_is_gone() -> None:
    whole, own = Fake(2.0, 300), Fake(1.0, 100)
    group = ContainerGroup(whole, own)
    assert (2.0, 300) == (total(group), group.memory_peak())
    own.gone = True
    whole.seconds = 3.0
    assert (3.0, 300) == (total(group), group.memory_peak())
    assert group.missed() == {"throttled", "oom_kills"}
    assert [] == group.processes()


def test_a_last_look_keeps_kills_and_throttling_that_only_the_own_group_reports() -> None:
    whole, own = Fake(2.0, 300), Fake(2.0, 299, kills=1)
    group = ContainerGroup(whole, own)
    group.read_last()
    own.gone = True
    cpu = group.cpu()
    assert cpu is not None
    assert (1, 0.5, 299) == (group.oom_kills(), cpu.throttled, group.memory_peak())
    assert frozenset() == group.missed()


def test_what_an_engines_helpers_use_beside_the_container_is_taken_off() -> None:
    whole, own, helpers = Fake(2.06, 311), Fake(2.0, 300), Fake(0.06, 11)
    group = ContainerGroup(whole, own, helpers)
    own.gone = True
    assert total(group) == pytest.approx(2.0)
    assert 300 == group.memory_peak()  # at least that: the helpers had 11 at most
    assert "memory_peak" in group.missed()
    assert "cpu" not in group.missed()


def test_without_a_group_above_the_last_reading_stands_and_is_at_least() -> None:
    own = Fake(1.5, 100)
    group = ContainerGroup(None, own)
    assert 1.5 == total(group)
    own.gone = True
    assert (1.5, 100, None) == (total(group), group.memory_peak(), group.memory())
    assert "cpu" in group.missed()


def test_cpu_time_goes_on_without_that_of_helpers_when_the_own_group_is_removed() -> None:
    whole, own, helpers = Fake(2.5, 311), Fake(2.0, 300), Fake(0.5, 11)
    group = ContainerGroup(whole, own, helpers)
    assert 2_000_000_000 == group.cpu_nanoseconds()
    whole.seconds = 2.75
    own.gone = True
    assert 2_250_000_000 == group.cpu_nanoseconds()


def test_cpu_time_without_a_group_above_is_that_of_the_last_look() -> None:
    own = Fake(1.5, 100)
    group = ContainerGroup(None, own)
    group.read_last()
    own.gone = True
    assert 1_500_000_000 == group.cpu_nanoseconds()


def test_of_a_container_that_already_ran_counters_begin_now_and_peaks_do_not() -> None:
    own = Fake(5.0, 100, kills=2)
    group = ContainerGroup(None, own, from_now=True)
    assert (0.0, 100, 0) == (total(group), group.memory_peak(), group.oom_kills())
    own.seconds = 6.5
    assert 1.5 == total(group)


def test_a_real_parent_is_one_path_in_every_hierarchy_and_goes_with_what_is_below() -> None:
    try:
        parent = create_parent(Machine(), "test")
    except NoData as reason:
        missing(f"no cgroup for containers: {reason}")
    assert parent.path == f"/jobmeter-{os.getpid()}-test"
    assert os.path.isdir(parent.group.path)
    os.makedirs(f"{parent.group.path}/left/behind")
    assert parent.remove()
    assert not os.path.exists(parent.group.path)


def test_the_parent_of_a_jobmeter_that_lives_is_not_swept() -> None:
    try:
        parent = create_parent(Machine(), "alive")
    except NoData as reason:
        missing(f"no cgroup for containers: {reason}")
    remove_empty_parents(Machine())
    assert os.path.isdir(parent.group.path)
    assert parent.remove()
