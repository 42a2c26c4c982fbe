"""Shares of memory, read one process after another while some of them end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobmeter.collectors.proc_memory import Shares
from jobmeter.kernel import procfs
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.kernel.procfs import SmapsRollup
from jobmeter.kernel.tree import Process, open_process
from tests.waiting import wait_for

SIZE = 64 * 2**20
CHILDREN = 4
# A child maps the block by reading it, and then reports.
PARENT = f"""
import os, signal
block = b"x" * {SIZE}
for _ in range({CHILDREN}):
    if os.fork() == 0:
        block.count(b"y")
        os.write(1, b"%d\\n" % os.getpid())
        signal.pause()
signal.pause()
"""


@pytest.fixture
def sharing() -> Iterator[list[Process]]:
    """A process and its forked children, which hold one block together."""
    with subprocess.Popen([sys.executable, "-S", "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        children: list[int] = []
        try:
            assert parent.stdout is not None
            children += [int(parent.stdout.readline()) for _ in range(CHILDREN)]
            yield [open_process(THIS_MACHINE, pid, keep_open=False) for pid in (parent.pid, *children)]
        finally:
            for pid in (*children, parent.pid):
                os.kill(pid, signal.SIGKILL)  # a child that a test killed is a zombie


def test_memory_that_is_shared_counts_once(sharing: list[Process]) -> None:
    total = sum(share.pss for share in Shares(THIS_MACHINE).update(sharing))
    assert SIZE < total < 1.3 * SIZE + 5 * 8 * 2**20


def test_a_reading_during_which_processes_ended_is_not_used(
    sharing: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_smaps_rollup = procfs.read_smaps_rollup
    seen: list[int] = []

    def read_and_end(machine: Machine, pid: int) -> SmapsRollup:
        """After two were read, the second of them ends: what it shared is in the others' shares from then on."""
        share = read_smaps_rollup(machine, pid)
        seen.append(share.pss)
        if len(seen) == 2:
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: procfs.read_stat(machine, pid).state in "ZX", "that its memory is free")
        return share

    monkeypatch.setattr(procfs, "read_smaps_rollup", read_and_end)
    shares = Shares(THIS_MACHINE)
    assert [] == shares.update(sharing)
    assert sum(seen) > sum(share.pss for share in Shares(THIS_MACHINE).update(sharing[:1] + sharing[2:])) + SIZE / 10
    assert shares.is_stale
    assert shares.estimate(sharing) is None


def test_the_end_of_a_process_that_shares_nothing_costs_no_reading(
    sharing: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_smaps_rollup = procfs.read_smaps_rollup
    with subprocess.Popen(["sleep", "1000"]) as small:
        alone = open_process(THIS_MACHINE, small.pid, keep_open=False)

        def read_and_end(machine: Machine, pid: int) -> SmapsRollup:
            share = read_smaps_rollup(machine, pid)
            if pid == small.pid:
                small.kill()
                small.wait()
            return share

        monkeypatch.setattr(procfs, "read_smaps_rollup", read_and_end)
        assert CHILDREN + 2 == len(Shares(THIS_MACHINE).update([alone, *sharing]))
