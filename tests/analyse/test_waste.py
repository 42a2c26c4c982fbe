"""Requests that could be smaller."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.overuse import needed_cpus
from jobmeter.analyse.waste import wasted_requests

GIB = 2**30


def row(**fields: Any) -> dict[str, Any]:
    usual = {
        "id": "run1", "name": "preprocess", "status": "completed", "wall_seconds": 600.0,
        "requirement_memory_bytes": 8 * GIB, "memory_peak_bytes": 1.2 * GIB,
    }  # fmt: skip
    return {**usual, **fields}


def test_memory_that_was_not_used_is_reported_with_what_it_would_free() -> None:
    (waste,) = wasted_requests([row()])
    assert ("preprocess", 6.5546875 * GIB) == (waste.name, waste.less)
    assert pytest.approx(6.5546875 / 6 * GIB) == waste.freed


def test_cpus_that_were_not_used_are_reported_as_whole_numbers() -> None:
    (waste,) = wasted_requests(
        [row(memory_peak_bytes=7 * GIB, requirement_cpus=8, cpu_peak_percent=190.0, cpu_mean_percent=120.0)]
    )
    assert ("CPU", 6, 1.0) == (waste.resource.name, waste.less, waste.freed)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "failed"},
        {"wall_seconds": 3.0},
        {"memory_quality": "at least"},
        {"memory_peak_bytes": 5 * GIB},
        {"requirement_memory_bytes": 64 * 2**20, "memory_peak_bytes": 2**20},
    ],
)
def test_no_waste_is_reported_for_failed_short_unsure_well_sized_or_tiny_jobs(fields: dict[str, Any]) -> None:
    assert [] == wasted_requests([row(**fields)])


def test_jobs_of_a_sweep_are_reported_together_by_the_largest() -> None:
    sweep = [
        row(name=f"fit_{number}", memory_peak_bytes=number * GIB,
            workflow_job={"job_id": number, "step": "fit_{i}", "attempt": 1})
        for number in (1, 2, 3)
    ]  # fmt: skip
    (waste,) = wasted_requests(sweep)
    assert ("fit_{i}", 3, 3 * GIB) == (waste.name, waste.runs, waste.used)


@pytest.mark.parametrize("status", ["oom", "timeout"])
def test_one_run_that_met_a_limit_speaks_against_all(status: str) -> None:
    assert [] == wasted_requests([row(), row(status=status)])
    assert [] == wasted_requests([row(), row(status=status, requirement_memory_bytes=4 * GIB)])


@pytest.mark.parametrize("fields", [{"status": "failed"}, {"wall_seconds": 3.0}, {"memory_quality": "at least"}])
def test_one_failed_short_or_unsure_run_does_not_silence_the_others(fields: dict[str, Any]) -> None:
    (waste,) = wasted_requests([row(), row(**fields)])
    assert (1, 6.5546875 * GIB) == (waste.runs, waste.less)
    (waste,) = wasted_requests([row(), row(**{**fields, "memory_peak_bytes": 3 * GIB})])
    assert 3 * GIB == waste.used


@pytest.mark.parametrize(
    ("peak", "mean", "expected"), [(101.0, 99.0, 1), (200.0, 60.0, 2), (760.0, 300.0, 7), (3.0, 1.0, 1)]
)
def test_whole_cpus_are_the_fewest_that_check_finds_enough(peak: float, mean: float, expected: int) -> None:
    assert expected == needed_cpus({"cpu_peak_percent": peak, "cpu_mean_percent": mean, "wall_seconds": 100.0})
