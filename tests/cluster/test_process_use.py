"""What the processes below one root use, against loads whose true use is known."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobmeter.cluster.process_use import BranchUse, ProcessesBelow
from jobmeter.kernel.machine import THIS_MACHINE, TICKS_PER_SECOND
from jobmeter.kernel.procfs import read_stat
from tests.waiting import wait_for

MIB = 2**20
ROOT = """
import subprocess, sys
children = []
for line in sys.stdin:
    children.append(subprocess.Popen([sys.executable, "-c", line]))
    print(children[-1].pid, flush=True)
for child in children: child.kill()
"""


class Root:
    """A process whose children run what they are given, one line each."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", ROOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid

    def start(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture
def root() -> Iterator[Root]:
    made = Root()
    try:
        yield made
    finally:
        made.close()


def branch(below: ProcessesBelow, pid: int) -> BranchUse:
    (of_pid,) = [each for each in below.read().branches if each.pid == pid]
    return of_pid


def cpu_seconds(pid: int) -> float:
    stat = read_stat(THIS_MACHINE, pid)
    return (stat.user + stat.system) / TICKS_PER_SECOND


def test_a_child_that_burns_a_core_uses_what_the_kernel_counts_and_waits_for_the_rest(root: Root) -> None:
    pid = root.start("while True: pass")
    below = ProcessesBelow(THIS_MACHINE, root.pid)

    def read_after(seconds: float) -> dict[str, float]:
        before = cpu_seconds(pid)
        wait_for(lambda: cpu_seconds(pid) - before > seconds, "it ran")
        return branch(below, pid).values

    below.read()
    read_after(0.3)
    before, started = cpu_seconds(pid), below._at
    values = read_after(0.5)
    span = below._at - started
    true = cpu_seconds(pid) - before
    below.close()
    assert true == pytest.approx(values["used_cpus"] * span, abs=0.1)
    assert 0.7 < values["used_cpus"] + values["waited_cpus"] < 1.3


def test_memory_of_a_child_is_its_own_and_shared_memory_is_left_out(root: Root) -> None:
    line = (
        "import mmap, time; own = bytearray(100 << 20); shared = mmap.mmap(-1, 200 << 20); "
        "shared.write(bytes(200 << 20)); time.sleep(1000)"
    )
    pid = root.start(line)
    below = ProcessesBelow(THIS_MACHINE, root.pid)
    wait_for(lambda: branch(below, pid).values["used_memory_bytes"] > 100 * MIB, "it has its memory")
    assert branch(below, pid).values["used_memory_bytes"] < 150 * MIB
    below.close()


def test_what_ended_children_used_is_counted_for_the_root(root: Root) -> None:
    """Their parent waits for them, or never does: the total does not fall."""
    below = ProcessesBelow(THIS_MACHINE, root.pid)
    below.read()
    pid = root.start("import time\nwhile time.process_time() < 0.5: pass".replace("\n", ";exec('") + "')")
    used = 0.0

    def burnt() -> bool:
        nonlocal used
        started = below._at
        reading = below.read()
        used += reading.values.get("used_cpus", 0.0) * (below._at - started)
        return all(each.pid != pid or each.values["processes"] == 0 for each in reading.branches)

    wait_for(burnt, "the child ended")
    assert 0.4 < used < 1.5
    below.close()


def test_a_daemon_that_left_its_parent_still_counts(root: Root) -> None:
    line = (
        "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        "'import time; memory = bytearray(100 << 20); time.sleep(1000)'], start_new_session=True); "
        "import time; time.sleep(1000)"
    )
    pid = root.start(line)
    below = ProcessesBelow(THIS_MACHINE, root.pid)
    # The parent alone has some MiB: the daemon has all of its memory when one branch of the tree has that much more.
    wait_for(lambda: below.read().values["used_memory_bytes"] > 100 * MIB, "the daemon has its memory")
    subprocess.run(["kill", "-9", str(pid)], check=True)
    wait_for(lambda: all(each.pid != pid or not each.values["processes"] for each in below.read().branches), "it ended")
    reading = below.read()
    assert reading.values["used_memory_bytes"] > 80 * MIB
    below.close()
    daemons = [each.pid for each in reading.branches if each.values["used_memory_bytes"] > 80 * MIB]
    for daemon in daemons:
        subprocess.run(["kill", "-9", str(daemon)], check=True)
    assert 1 == len(daemons)


def test_the_first_reading_has_levels_and_no_rates(root: Root) -> None:
    below = ProcessesBelow(THIS_MACHINE, root.pid)
    values = below.read().values
    assert {"used_memory_bytes", "processes"} == set(values)
    below.close()
