"""Memory over time: mean, minimum and peak of known courses, in every way that a job is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from benchmarks.levels import KINDS, SECONDS, Levels, reported_levels, true_levels

from tests.container_engines import PYTHON, WITH_PYTHON, Engine
from tests.running import (
    USERS,
    environment_with_packages,
    interpreter,
    jobmeter,
    meter,
    readable_copy,
    workplace,
)
from tests.workflow.live import Place

WITHIN = 0.05
_AT_ONCE = 3
"""Loads that sleep most of their time and run beside each other."""
_MORE_TRIES = 4
_RIGHT_TRIES = 3
"""On a machine that others keep busy a look may come late. What was wrong once must be right in most of five tries."""

Course = tuple[dict[str, float], dict[str, Any]]
"""What a load reported of itself, and its record."""


def loads() -> str:
    return f"{readable_copy()}/benchmarks/loads.py"


def faults(true: Levels, reported: Levels, *, within: float, with_minimum: bool) -> list[str]:
    """The figures that are not right: means to `within`, peaks to 5 %."""
    wrong = [
        f"{field} {getattr(reported, field) / getattr(true, field):.3f} of the truth"
        for field, most in (("mean", within), ("peak", WITHIN), ("gib_hours", within))
        if abs(getattr(reported, field) / getattr(true, field) - 1) > most
    ]
    # Kernel memory is charged to a cgroup, and is not in the interpreter's own account; and until the first look a ramp
    # has grown a little.
    if with_minimum and reported.most_minimum > true.most_minimum + WITHIN * true.peak:
        wrong.append(f"minimum {reported.most_minimum}, the interpreter alone has {true.most_minimum}")
    return wrong


def wrong_levels(
    measure: Callable[[str], Course], at_once: int, *, within: float = WITHIN, with_minimum: bool = True
) -> dict[str, list[str]]:
    """The kinds of load whose figures are wrong, with the faults of the last try."""

    def judge(course: Course) -> list[str]:
        return faults(true_levels(*course), reported_levels(course[1]), within=within, with_minimum=with_minimum)

    wrong = _wrong(KINDS, measure, at_once, judge)
    right_tries = dict.fromkeys(wrong, 0)
    for _ in range(_MORE_TRIES):
        kinds = [kind for kind, right in right_tries.items() if right < _RIGHT_TRIES]
        faulty = _wrong(kinds, measure, at_once, judge)
        wrong |= faulty
        for kind in kinds:
            right_tries[kind] += kind not in faulty
    return {kind: wrong[kind] for kind, right in right_tries.items() if right < _RIGHT_TRIES}


def _wrong(
    kinds: Iterable[str], measure: Callable[[str], Course], at_once: int, judge: Callable[[Course], list[str]]
) -> dict[str, list[str]]:
    kinds = list(kinds)
    with ThreadPoolExecutor(at_once) as pool:
        faulty = dict(zip(kinds, map(judge, pool.map(measure, kinds))))
    return {kind: fault for kind, fault in faulty.items() if fault}


@USERS
@pytest.mark.parametrize("seconds", SECONDS)
def test_levels_of_a_command_are_within_5_percent(user: int, seconds: float) -> None:
    def measure(kind: str) -> Course:
        done = meter(interpreter(), loads(), f"level-{kind}", "@", str(seconds), user=user)
        return done.truth[0], done.record

    assert {} == wrong_levels(measure, _AT_ONCE if seconds > 1 else 1)


@USERS
@pytest.mark.parametrize("seconds", SECONDS)
def test_levels_of_the_jobs_of_a_workflow_are_within_5_percent(user: int, seconds: float) -> None:
    def measure(kind: str) -> Course:
        folder = Path(workplace())
        place = Place(folder, user)
        command = f"{interpreter()} {loads()} level-{kind} {folder} {seconds}"
        done = place.run(json.dumps({"name": "levels", "jobs": [{"name": kind, "command": command}]}))
        assert 0 == done.returncode, done.stderr
        (record,) = [
            line["record"]
            for lines in place.journals()
            for line in lines
            if isinstance(line, dict) and "record" in line
        ]
        return json.loads((folder / "truth").read_text()), record

    assert {} == wrong_levels(measure, _AT_ONCE if seconds > 1 else 1)


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("seconds", SECONDS)
def test_levels_of_a_container_are_within_5_percent_and_10_when_it_is_short(docker: Engine, seconds: float) -> None:
    def measure(kind: str) -> Course:
        folder = workplace()
        options = [*WITH_PYTHON, f"--mount={loads()}:/loads.py:ro", f"--mount={folder}:/truth"]
        done = docker.meter(PYTHON, "/loads.py", f"level-{kind}", "/truth", str(seconds), options=options)
        assert 0 == done.exit_code, done.stderr
        return json.loads(Path(f"{folder}/truth").read_text()), done.record

    # Nothing holds a container back until the first look, which may find all allocated that it ever has.
    within = WITHIN if seconds > 1 else 2 * WITHIN
    assert {} == wrong_levels(measure, _AT_ONCE if seconds > 1 else 1, within=within, with_minimum=False)


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
    done = jobmeter(
        "run", "--store", store, "--interval", "0.25s", "--window", "0.5s", "--", interpreter(), "-c", LEAK, user=user
    )
    assert 0 == done.returncode, done.stderr
    shown = jobmeter("show", "last", "--store", store, env=environment_with_packages())
    assert "memory grew steadily" in shown.stdout
