"""Waits of real jobs: for a CPU, for a disk."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.parts import missing
from tests.running import USERS, meter, readable_copy
from tests.test_peaks import with_packages

CROWD = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        until = time.monotonic() + 3
        while time.monotonic() < until: pass
        waited = int(open("/proc/self/schedstat").read().split()[1]) / 1e9
        open(f"{sys.argv[1]}/waited{number}", "w").write(str(waited))
        os._exit(0)
    children.append(child)
for child in children: os.waitpid(child, 0)
"""


@USERS
def test_the_time_that_processes_waited_for_a_cpu_is_what_they_say_themselves(user: int) -> None:
    done = meter("python3", "-S", "-c", CROWD, "@", options=("--interval", "0.1"), user=user)
    journal = Path(done.stderr.split("record")[-1].split()[-1])
    folder = journal.parents[2]
    waited = sum(float(path.read_text()) for path in folder.glob("waited*"))
    assert waited > 4  # of four that share one CPU for three seconds
    measured = done.record["measurements"]["proc_run_delay_seconds"]["total"]
    assert 0.8 * waited < measured < 1.1 * waited + 0.3
    # A bar of the whole time.
    shown = with_packages("show", "--store", str(folder / "store"))
    (line,) = [line for line in shown.splitlines() if line.startswith("time ")]
    assert "running" in line


DISK = """
#include <unistd.h>
/* The parent of a vfork sleeps uninterruptibly, as one that waits for a disk, until its child has ended. */
int main(void) {
    if (vfork() == 0) { sleep(3); _exit(0); }
    return 0;
}
"""


@pytest.fixture(scope="module")
def waiter() -> str:
    if shutil.which("gcc") is None:
        missing("needs gcc")
    path = f"{readable_copy()}/waits-for-disk"
    subprocess.run(["gcc", "-x", "c", "-", "-o", path], input=DISK, text=True, check=True)
    return path


@USERS
def test_uninterruptible_sleep_is_a_wait_for_a_disk(user: int, waiter: str) -> None:
    done = meter(waiter, user=user)
    waited = done.record["measurements"]["proc_disk_wait_seconds"]["total"]
    assert 2.4 < waited < done.record["wall_seconds"] + 0.3
    assert "waits_disk" in [finding["kind"] for finding in done.record["findings"]]
    assert 0 == meter("sleep", "0.5", user=user).record["measurements"]["proc_disk_wait_seconds"]["total"]
