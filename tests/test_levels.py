"""Memory over time: mean, minimum and peak of known courses, in every way that a job is run."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.levels import KINDS, SECONDS, reported_levels, true_levels
from tests.container_engines import PYTHON, WITH_PYTHON, Engine
from tests.running import NOBODY, Metered, interpreter, jobmeter, meter, readable_copy, workplace
from tests.workflow.live import Place

MIB = 1 << 20
USERS = pytest.mark.parametrize("user", [pytest.param(0, id="root"), pytest.param(NOBODY, id="ordinary user")])
WITHIN = 0.05
_AT_ONCE = 3
"""Loads that sleep most of their time and run beside each other."""


def loads() -> str:
    return f"{readable_copy()}/benchmarks/loads.py"


def check(name: str, truth: dict[str, float], record: dict[str, Any]) -> str | None:
    """What is wrong with the figures of a record; None when all are within 5 % of the truth."""
    true, reported = true_levels(truth, record), reported_levels(record)
    wrong = [
        f"{field} {getattr(reported, field) / getattr(true, field):.3f} of the truth"
        for field in ("mean", "peak", "gib_hours")
        if abs(getattr(reported, field) / getattr(true, field) - 1) > WITHIN
    ]
    if reported.most_minimum > true.most_minimum * (1 + WITHIN):
        wrong.append(f"minimum {reported.most_minimum}, the interpreter alone has {true.most_minimum}")
    return f"{name}: {', '.join(wrong)}" if wrong else None


@USERS
@pytest.mark.parametrize("seconds", SECONDS)
def test_levels_of_a_command_are_within_5_percent(user: int, seconds: float) -> None:
    def measure(kind: str) -> Metered:
        return meter(interpreter(), loads(), f"level-{kind}", "@", str(seconds), user=user)

    with ThreadPoolExecutor(_AT_ONCE if seconds > 1 else 1) as pool:
        done = dict(zip(KINDS, pool.map(measure, KINDS)))
    assert [] == [fault for kind, one in done.items() if (fault := check(kind, one.truth[0], one.record))]


@USERS
def test_levels_of_the_jobs_of_a_workflow_are_within_5_percent(user: int, tmp_path: Path) -> None:
    place = Place(tmp_path, user)
    jobs = [(f"{kind}-{seconds:g}s", kind, seconds) for seconds in SECONDS for kind in KINDS]
    for name, _, _ in jobs:
        (tmp_path / name).mkdir(mode=0o777)
        (tmp_path / name).chmod(0o777)
    spec = {
        "name": "levels",
        "jobs": [
            {"name": name, "command": f"{interpreter()} {loads()} level-{kind} {tmp_path}/{name} {seconds}"}
            for name, kind, seconds in jobs
        ],
    }
    path = place.write(json.dumps(spec), "spec.json")
    done = place.call("run", "--max-parallel-jobs", str(_AT_ONCE), str(path), timeout=300)
    assert 0 == done.returncode, done.stderr
    records = {line["record"]["name"]: line["record"] for lines in place.journals() for line in lines if "record" in line}
    assert [] == [
        fault
        for name, _, _ in jobs
        if (fault := check(name, json.loads((tmp_path / name / "truth").read_text()), records[name]))
    ]


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("seconds", SECONDS)
def test_levels_of_a_container_are_within_5_percent(docker: Engine, seconds: float) -> None:
    def measure(kind: str) -> tuple[dict[str, float], Metered]:
        folder = workplace()
        options = [*WITH_PYTHON, f"--mount={loads()}:/loads.py:ro", f"--mount={folder}:/truth"]
        done = docker.meter(PYTHON, "/loads.py", f"level-{kind}", "/truth", str(seconds), options=options)
        assert 0 == done.exit_code, done.stderr
        return json.loads(Path(f"{folder}/truth").read_text()), done

    with ThreadPoolExecutor(_AT_ONCE if seconds > 1 else 1) as pool:
        done = dict(zip(KINDS, pool.map(measure, KINDS)))
    assert [] == [fault for kind, (truth, one) in done.items() if (fault := check(kind, truth, one.record))]


LEAK = """
import time
held = []
for _ in range(60):
    held.append(b"x" * (2 << 20))
    time.sleep(0.2)
"""


@USERS
def test_a_leak_is_reported_whatever_the_window(user: int) -> None:
    store = f"{workplace()}/store"
    done = jobmeter("run", "--store", store, "--window", "1s", "--", interpreter(), "-c", LEAK, user=user)
    assert 0 == done.returncode, done.stderr
    shown = jobmeter("show", "last", "--store", store)
    assert "memory grew steadily" in shown.stdout
