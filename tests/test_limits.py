"""`--enforce`: the request becomes a limit, and the whole job that exceeds it ends."""

from __future__ import annotations

import os
import time

import pytest

from tests.parts import need_root
from tests.running import USERS, interpreter, meter

MIB = 1 << 20
HOG = (
    "import time\nblocks = []\n"
    "for _ in range(400):\n    blocks.append(b'x' * (1 << 20)); time.sleep(0.005)\n"
    "time.sleep(30)"
)


@USERS
def test_a_job_over_its_memory_is_ended_as_out_of_memory(user: int) -> None:
    done = meter(interpreter(), "-c", HOG, options=["--memory", "100m", "--enforce"], user=user)
    assert done.record["outcome"] == {"status": "oom", "exit_code": None, "signal": 9}
    assert done.exit_code == 137
    assert "out of memory" in done.stderr
    # The kernel stops it at the limit; the meter a little later.
    assert done.value("memory_peak_bytes") == pytest.approx(100 * MIB, rel=0.02 if user == 0 else 0.6)


def test_an_overrun_of_a_child_ends_the_parent_too() -> None:
    need_root("for a cgroup")
    parent = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {HOG!r}])\ntime.sleep(30)"
    began = time.monotonic()
    done = meter(interpreter(), "-c", parent, options=["--memory", "100m", "--enforce"])
    assert done.record["outcome"]["status"] == "oom"
    assert done.record["measurements"]["cgroup_oom_kills"]["total"] >= 1
    assert time.monotonic() - began < 25


@USERS
def test_a_job_over_its_runtime_is_ended_with_all_it_started(user: int) -> None:
    body = "setsid sleep 60 & echo $!; sleep 60"
    done = meter("sh", "-c", body, options=["--runtime", "0.5s", "--enforce"], user=user)
    assert done.record["outcome"]["status"] == "timeout"
    assert done.exit_code == 143
    assert not os.path.exists(f"/proc/{done.stdout.strip()}")


def test_a_job_that_ignores_sigterm_is_killed() -> None:
    body = "trap '' TERM; while :; do sleep 0.2; done"
    done = meter("sh", "-c", body, options=["--runtime", "0.3s", "--enforce"])
    assert done.record["outcome"] == {"status": "timeout", "exit_code": None, "signal": 9}


def test_a_cpu_limit_holds_a_busy_job_back_and_the_throttled_time_is_recorded() -> None:
    need_root("for a cgroup")
    # So little that it would get more on any machine, also on a busy one.
    body = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    done = meter("sh", "-c", body, options=["--cpus", "0.05", "--enforce"])
    assert done.value("cpu_mean_percent") <= 8
    assert done.record["measurements"]["cgroup_throttled_seconds"]["total"] > 0


def test_without_enforce_nothing_is_limited() -> None:
    done = meter("sleep", "0.4", options=["--memory", "1k", "--runtime", "0.1s", "--cpus", "0.01"])
    assert done.record["outcome"]["status"] == "completed"
    assert done.record["requirement"] == {"cpus": 0.01, "memory_bytes": 1024, "runtime_seconds": 0.1}


@pytest.mark.parametrize(("body", "status"), [("exit 137", "failed"), ("kill -9 $$", "killed")])
def test_137_alone_is_not_out_of_memory(body: str, status: str) -> None:
    done = meter("sh", "-c", body)
    assert (137, status) == (done.exit_code, done.record["outcome"]["status"])
