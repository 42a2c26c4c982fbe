"""The peak explained: who held the memory when there was most of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import NOBODY, USERS, Metered, environment, jobmeter, meter, workplace

MIB = 1 << 20
HOLDERS = """
import subprocess, sys, time
BODY = '''
import sys
for line in sys.stdin:  # a number of MiB to hold, and then the next
    held = b""
    held = bytearray(int(line) << 20)
    for page in range(0, len(held), 4096): held[page] = 1
    print("held", flush=True)
'''
names = ("first", "second", "third")
held = {name: subprocess.Popen([sys.executable, "-S", "-c", BODY, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in names}
def hold(**sizes):
    for name, size in sizes.items():
        held[name].stdin.write(b"%d\\n" % size)
        held[name].stdin.flush()
        held[name].stdout.readline()
    time.sleep(3)  # on a busy machine shares of memory are read every second or two
hold(first=150)
hold(first=300, second=200)
hold(first=10, second=10, third=250)
for each in held.values():
    each.stdin.close()
    each.wait()
"""
"""Three processes that hold most at different times: 150 MiB, then 500 of which the third has none, then 270."""


def largest(record: Any) -> dict[str, int]:
    """What each holder had at the peak, by its name."""
    return {process["cmd"].split()[-1]: process["bytes"] for process in record["peaks"][-1]["processes"]}


@USERS
def test_the_right_processes_held_it_and_their_sum_is_the_peak(user: int) -> None:
    done = meter("python3", "-c", HOLDERS, user=user)
    peak = done.record["peaks"][-1]
    held = largest(done.record)
    assert held["first"] == pytest.approx(300 * MIB, abs=18 * MIB)  # and the interpreter
    assert held["second"] == pytest.approx(200 * MIB, abs=18 * MIB)  # and the interpreter
    assert held["third"] < 20 * MIB
    total = sum(process["bytes"] for process in peak["processes"])
    assert total == pytest.approx(done.value("memory_peak_bytes"), rel=0.03)
    assert 1.0 < peak["seconds"] < done.record["wall_seconds"]
    first = next(process for process in peak["processes"] if process["cmd"].endswith(" first"))
    assert first.get("anonymous_bytes", 300 * MIB) > 290 * MIB
    # Highs before it are apart from one another, and lower.
    assert len(done.record["peaks"]) <= 4
    assert sorted(entry["bytes"] for entry in done.record["peaks"])[-1] == peak["bytes"]


SHARED = """
import os, time
held = bytearray(200 << 20)
for page in range(0, len(held), 4096): held[page] = 1
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        time.sleep(2); os._exit(0)
    children.append(child)
for child in children: os.waitpid(child, 0)
"""


@USERS
def test_what_processes_share_is_not_counted_in_each_of_them(user: int) -> None:
    done: Metered = meter("python3", "-S", "-c", SHARED, user=user)
    peak = done.record["peaks"][-1]
    assert sum(process["bytes"] for process in peak["processes"]) < 1.2 * done.value("memory_peak_bytes")


def with_packages(*arguments: str) -> str:
    """What a command prints that needs more than the standard library."""
    command = [sys.executable, "-m", "jobmeter", *arguments]
    return subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout


def test_show_and_plot_say_who_it_was() -> None:
    folder = workplace()
    store = ("--store", f"{folder}/store")
    jobmeter("run", "--quiet", *store, "--", "python3", "-c", HOLDERS)
    shown = with_packages("show", *store)
    (line,) = [line for line in shown.splitlines() if line.startswith("peak ")]
    assert " s: python3 " in line
    assert "anonymous" in line
    for name in ("page.html", "picture.svg"):
        with_packages("plot", *store, "-o", f"{folder}/{name}")
        assert "MiB anonymous" in Path(folder, name).read_text()


def test_a_job_of_next_to_no_memory_is_explained_too() -> None:
    record = meter("sleep", "0.3", user=NOBODY if os.getuid() == 0 else None).record
    assert all(peak["processes"] for peak in record.get("peaks", []))
    assert json.dumps(record)
