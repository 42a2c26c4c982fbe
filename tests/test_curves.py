"""The curve of a run of some seconds, as its journal has it: what was used when, of a load that reports it."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from jobmeter.journal.reader import Journal, read_journal
from jobmeter.report.plot.series import Curve, job_curves
from tests.running import USERS, interpreter, jobmeter, workplace

MIB = 2**20
WITHIN = 0.1
TRIES = 5
"""On a machine that others keep busy, a look may come late."""
PHASES = """
import json, sys, time

started, phases = time.monotonic(), []
for megabytes, busy in ((200, False), (40, True), (120, False), (40, True)):
    held = b"x" * (megabytes << 20)
    began, used = time.monotonic() - started, time.process_time()
    while time.monotonic() - started - began < 0.8:
        busy or time.sleep(0.05)
    phases.append((began, time.monotonic() - started, megabytes, time.process_time() - used))
    del held
json.dump(phases, open(sys.argv[1], "w"))
"""


class Phase(NamedTuple):
    began: float
    ended: float
    megabytes: float
    cpu_seconds: float


def measured(user: int, *options: str) -> tuple[list[Phase], Journal]:
    folder = workplace()
    truth, store = f"{folder}/truth.json", f"{folder}/store"
    load = [interpreter(), "-c", PHASES, truth]
    done = jobmeter("run", "--quiet", "--store", store, *options, "--", *load, user=user)
    assert 0 == done.returncode, done.stderr
    (name,) = os.listdir(f"{store}/journal")
    phases = [Phase(*phase) for phase in json.loads(Path(truth).read_text())]
    return phases, read_journal(f"{store}/journal/{name}")


def mean(curve: Curve, begin: float, end: float) -> float:
    """The mean of the curve over this time; a value holds from the point before it to its own."""
    total = 0.0
    for (before, _), (at, value) in pairwise(zip(curve.times, curve.mean)):
        total += (value or 0.0) * max(min(at, end) - max(before, begin), 0.0)
    return total / (end - begin)


def faults(phases: list[Phase], journal: Journal) -> list[str]:
    """What of the curves is not as the load reported."""
    cpu, memory, _ = (panel.curve for panel in job_curves({"id": "x", "name": "x"}, journal).panels)
    wrong = [f"{len(c.times)} points of {c.key}" for c in (cpu, memory) if not 50 <= len(c.times) <= 500]
    late = memory.times[-1] - phases[-1].ended  # the interpreter's own start and end
    for phase in phases:
        quarter = (phase.ended - phase.began) / 4
        level = mean(memory, phase.began + quarter + late / 2, phase.ended - quarter + late / 2) / MIB
        if not phase.megabytes * (1 - WITHIN) < level < phase.megabytes * (1 + WITHIN) + 12:
            wrong.append(f"{level:.0f} MiB in place of {phase.megabytes} MiB and the interpreter")
        used = mean(cpu, phase.began, phase.ended + late) / 100 * (phase.ended + late - phase.began)
        if not phase.cpu_seconds * (1 - WITHIN) - 0.02 < used < phase.cpu_seconds * (1 + WITHIN) + late + 0.05:
            wrong.append(f"{used:.3f} s of CPU in place of {phase.cpu_seconds:.3f} s")
    return wrong


@USERS
def test_a_run_of_three_seconds_has_a_curve_that_shows_what_it_did(user: int) -> None:
    wrong: list[str] = []
    for _ in range(TRIES):
        wrong = faults(*measured(user))
        if not wrong:
            break
    assert [] == wrong


@USERS
def test_its_journal_keeps_to_the_budget_of_200_bytes_a_window(user: int) -> None:
    folder = workplace()
    burn = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done; sleep 0.3; sleep 0.3"
    jobmeter("run", "--quiet", "--store", folder, "--", "sh", "-c", burn, user=user)
    (name,) = os.listdir(f"{folder}/journal")
    lines = Path(folder, "journal", name).read_bytes().splitlines(keepends=True)
    windows = [line for line in lines if line.startswith(b"[")]
    between = [line for line in lines if not line.startswith((b'{"schema"', b'{"record"'))]
    assert sum(map(len, between)) <= 200 * len(windows)


def test_a_window_that_is_requested_is_kept_to() -> None:
    _, journal = measured(os.getuid(), "--window", "1s")
    assert [1, 2, 3] == [int(window.seconds) for window in journal.windows][:3]
