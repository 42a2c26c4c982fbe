from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jobmeter.collectors.bpf import BpfCollector
from jobmeter.collectors.contract import Target
from jobmeter.errors import NoData
from jobmeter.kernel.machine import THIS_MACHINE
from tests.parts import missing, need_root

ENDED = 2**22 + 1
"""More than any pid: a process that has ended."""


def open_programs() -> list[str]:
    """The BPF programs, maps and links that this process has open."""
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if os.path.lexists(path)]
    return [link for link in links if "bpf" in link]


def test_a_job_whose_root_has_ended_leaves_no_program_in_the_kernel() -> None:
    need_root("to count packets in the kernel")
    try:
        BpfCollector().check(THIS_MACHINE)
    except NoData as reason:
        missing(f"no packet counters: {reason}")
    before = open_programs()
    running = subprocess.Popen(["sleep", "1000"])
    try:
        with pytest.raises(NoData, match="No such file"):
            BpfCollector().open(Target(ENDED, running.pid), BpfCollector.default)
        assert before == open_programs()
    finally:
        running.kill()
        running.wait()
