"""A job's processes, in and out of the group made for it, on the real kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import files
from jobmeter.kernel.cgroup.group import JobGroup, create_group
from jobmeter.kernel.cgroup.members import Membership
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import Identity, read_stat
from jobmeter.kernel.tree import Process
from tests.parts import missing


@pytest.fixture
def group() -> Iterator[JobGroup]:
    try:
        made = create_group(THIS_MACHINE, "members")
    except NoData as reason:
        missing(str(reason))
    yield made
    made.remove()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def seen(process: subprocess.Popen[bytes]) -> list[Process]:
    stat = read_stat(THIS_MACHINE, process.pid)
    return [Process(Identity(process.pid, stat.start), stat)]


def test_a_process_in_the_group_has_not_left(group: JobGroup, sleeper: subprocess.Popen[bytes]) -> None:
    group.add(sleeper.pid)
    membership = Membership(THIS_MACHINE, group.directories())
    membership.update(seen(sleeper))
    assert membership.left == set()


def test_a_process_in_a_group_below_has_not_left(group: JobGroup, sleeper: subprocess.Popen[bytes]) -> None:
    for path in group.directories().values():
        os.mkdir(f"{path}/below")
        files.move(sleeper.pid, f"{path}/below")
    membership = Membership(THIS_MACHINE, group.directories())
    membership.update(seen(sleeper))
    membership.update(seen(sleeper))
    assert membership.left == set()


def test_who_left_is_known_by_controller(group: JobGroup, sleeper: subprocess.Popen[bytes]) -> None:
    group.add(sleeper.pid)
    controller, path = next(iter(group.directories().items()))
    membership = Membership(THIS_MACHINE, group.directories())
    files.move(sleeper.pid, os.path.dirname(path))
    membership.update(seen(sleeper))
    assert membership.left == {controller}


def test_who_ended_has_not_left(group: JobGroup, sleeper: subprocess.Popen[bytes]) -> None:
    group.add(sleeper.pid)
    processes = seen(sleeper)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    membership = Membership(THIS_MACHINE, group.directories())
    membership.update(processes)
    sleeper.wait()
    membership.update(processes)
    assert membership.left == set()
