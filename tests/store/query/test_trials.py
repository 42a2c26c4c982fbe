"""The trials of a study: jobs, each with the cost of all its attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobmeter.analyse.study import Trial
from jobmeter.store import Selection
from jobmeter.store.query.trials import trials_of
from tests.runs import record, workflow_run
from tests.store.kept import opened

LOSS = {"loss": {"value": 0.5, "seconds": [10.0, 20.0], "values": [0.7, 0.5]}}


def trials(folder: Path, *runs: Any) -> list[Trial]:
    """The trials that these runs make; they start one hour after another."""
    for hour, run in enumerate(runs):
        run["started"] = f"2026-01-31T{hour:02}:00:00.000Z"
    store = opened(folder)
    store.add_all((run, (), None) for run in runs)
    return trials_of(store, Selection(), "loss")


def test_a_job_that_was_retried_is_one_trial_with_the_cost_of_all_attempts(tmp_path: Path) -> None:
    first = workflow_run("a1", 1, 1, "oom", wall_seconds=30.0, cpu_seconds=60.0, memory_mean_bytes=400)
    other = workflow_run("b1", 2, 1, wall_seconds=5.0)
    cost: dict[str, Any] = {"wall_seconds": 90.0, "cpu_seconds": 40.0, "memory_mean_bytes": 800}
    last = {"metrics": LOSS, **workflow_run("a2", 1, 2, memory_peak_bytes=900, **cost)}
    retried, single = trials(tmp_path, first, other, last)
    assert ("a2", "completed", 0.5) == (retried.id, retried.status, retried.value)
    assert (120.0, 100.0, 900) == (retried.wall_seconds, retried.cpu_seconds, retried.memory_peak_bytes)
    assert pytest.approx(30 * 400 + 90 * 800) == retried.gb_hours * 3600 * 2**30
    assert ((40.0, 0.7), (50.0, 0.5)) == retried.points
    assert ("b1", 5.0, None, None) == (single.id, single.wall_seconds, single.cpu_seconds, single.memory_mean_bytes)


def test_the_same_job_in_another_run_of_its_workflow_is_another_trial(tmp_path: Path) -> None:
    again = workflow_run("a2", 1)
    again["workflow"]["run_id"] = 2
    assert ["a1", "a2"] == [trial.id for trial in trials(tmp_path, workflow_run("a1", 1), again)]


def test_runs_of_which_no_number_of_a_job_is_known_are_trials_of_their_own(tmp_path: Path) -> None:
    part = {"workflow": {"id": "demo", "run_id": 1}}
    runs = record("a1"), record("a2"), {**part, **record("b1")}, {**part, **record("b2")}
    assert ["a1", "a2", "b1", "b2"] == [trial.id for trial in trials(tmp_path, *runs)]


def test_a_job_whose_last_attempt_has_not_ended_is_no_trial_yet(tmp_path: Path) -> None:
    runs = workflow_run("a1", 1, 1, "oom"), workflow_run("a2", 1, 2, "detached"), workflow_run("b1", 2)
    assert ["b1"] == [trial.id for trial in trials(tmp_path, *runs)]
