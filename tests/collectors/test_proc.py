"""The tree in /proc, where it ends before it is seen, or leaves the cgroup of its job unseen."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time

import pytest

from jobmeter.collectors.contract import Moment, Target
from jobmeter.collectors.proc import ProcCollector
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.group import create_group
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.tree import Tree
from tests.parts import missing, need_root
from tests.waiting import LONG


def test_a_process_that_ends_while_it_is_first_looked_at_gives_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "60"])
    refresh = Tree.refresh

    def end_it_and_refresh(tree: Tree) -> None:
        process.kill()
        process.wait()
        refresh(tree)

    monkeypatch.setattr(Tree, "refresh", end_it_and_refresh)
    with pytest.raises(NoData, match=f"process {process.pid} has ended"):
        ProcCollector().open(Target(process.pid, process.pid, root_is_job=True), ProcCollector.default)


def test_a_peak_whose_shares_are_read_once_nothing_runs_any_more_is_explained() -> None:
    code = "import sys, subprocess\nchild = subprocess.Popen(['sleep', '60'])\nprint(flush=True)\n"
    code += "for line in sys.stdin: held = b'x' * (int(line) << 20); print(flush=True)\nchild.kill()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    target = Target(process.pid, process.pid, root_is_job=True)
    with contextlib.closing(ProcCollector().open(target, ProcCollector.default)) as source:
        source.read(Moment(time.monotonic()))
        process.stdin.write("200\n")
        process.stdin.flush()
        process.stdout.readline()
        source._shares._not_before = math.inf  # as if it were too expensive now
        source.read(Moment(time.monotonic()))
        source._shares._not_before = 0.0
        deadline = time.monotonic() + LONG
        while source._shares.is_stale and time.monotonic() < deadline:
            source.read(Moment(time.monotonic(), quiet=True))
        peak = source.peaks(time.monotonic())[-1]
    process.communicate()
    assert 200 << 20 <= peak["bytes"] < 230 << 20


def test_a_process_that_is_moved_while_it_sleeps_is_noticed_though_nothing_ran_in_the_cgroup() -> None:
    need_root("for a cgroup")
    if not os.path.exists("/sys/fs/cgroup/cpuacct/cgroup.procs"):
        missing("needs cgroup v1")
    process = subprocess.Popen(["sleep", "60"])
    group = create_group(THIS_MACHINE, f"moved{process.pid}")
    try:
        group.add(process.pid)
        target = Target(process.pid, process.pid, group=group, root_is_job=True)
        with contextlib.closing(ProcCollector().open(target, ProcCollector.default)) as source:
            source.read(Moment(time.monotonic()))
            assert "cgroup_cpu_seconds" not in source.incomplete()
            used = group.cpu_nanoseconds()
            for controller in ("memory", "cpuacct"):
                with open(f"/sys/fs/cgroup/{controller}/cgroup.procs", "w", encoding="ascii") as file:
                    file.write(str(process.pid))
            source.read(Moment(time.monotonic(), quiet=True))
            assert used == group.cpu_nanoseconds(), "nothing ran in the cgroup"
            assert {"cgroup_cpu_seconds", "cgroup_mem_peak"} <= source.incomplete()
            assert used is not None
            assert source.outran(used), "so that the process is looked at from now on"
    finally:
        process.kill()
        process.wait()
        group.remove()
