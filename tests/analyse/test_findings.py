from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.findings import findings, line_through
from jobmeter.analyse.timeline import WindowSample
from tests.runs import record

GIB = 1 << 30
REQUESTED = {"cpus": 2, "memory_bytes": 4 * GIB, "runtime_seconds": 60}


def kinds(run: Any, samples: list[WindowSample] | None = None) -> list[str]:
    return [finding.kind for finding in findings(run, samples or [])]


def used(**figures: Any) -> Any:
    """A run that used most of what it requested, but for these figures."""
    usual = {"wall_seconds": 50.0, "cpu_mean_percent": 180.0, "cpu_seconds": 90.0, "memory_peak_bytes": 3 * GIB}
    return record("aaa1", requirement=REQUESTED, **{**usual, **figures})


def memory(*levels: float) -> list[WindowSample]:
    return [WindowSample(10.0 * number, 50.0, level, 1) for number, level in enumerate(levels, start=1)]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (used(), []),
        (used(memory_peak_bytes=5 * GIB), ["over_memory"]),
        (used(memory_peak_bytes=4 * GIB), []),
        (used(cpu_mean_percent=220.0), ["over_cpus"]),
        (used(cpu_mean_percent=203.0), []),
        (used(cpu_peak_percent=229.0), []),
        (used(cpu_peak_percent=231.0), ["over_cpus"]),
        ({**used(cpu_peak_percent=231.0, cpu_mean_percent=220.0), "enforced": ["cpus"]}, []),
        (used(wall_seconds=61.0), ["over_runtime"]),
        (used(memory_peak_bytes=GIB), ["under_memory"]),
        (used(cpu_mean_percent=30.0, cpu_peak_percent=60.0), ["under_cpus"]),
        (used(cpu_mean_percent=30.0, cpu_peak_percent=190.0), []),
        (used(memory_peak_bytes=4.03 * GIB), []),
        (used(memory_peak_bytes=GIB, wall_seconds=5.0), []),
        (used(wall_seconds=20.0), []),
        (record("aaa1", wall_seconds=50.0), []),
    ],
    ids=[
        "as requested", "over memory", "all of it", "over cpus", "a little over", "a peak a little over",
        "a peak over", "cpus enforced", "over time", "memory unused",
        "cpus unused", "cpus used for a while", "less than a percent over", "too short to matter", "time unused",
        "nothing measured",
    ],
)  # fmt: skip
def test_usage_is_compared_with_the_request(run: dict[str, Any], expected: list[str]) -> None:
    assert expected == kinds(run)


def test_waste_is_not_reported_for_a_figure_that_may_be_higher() -> None:
    run = used(memory_peak_bytes=GIB)
    run["usage"]["memory_peak_bytes"]["quality"] = "at least"
    assert [] == kinds(run)


def test_a_run_out_of_memory_is_reported_with_what_to_request() -> None:
    run = used(memory_peak_bytes=4 * GIB)
    run["outcome"] = {"status": "oom", "exit_code": None, "signal": 9}
    assert ["It ran out of memory. Request more than 4 GiB."] == [finding.text for finding in findings(run)]


def test_a_process_that_the_oom_killer_ended_is_reported_though_the_job_went_on() -> None:
    run = used()
    run["measurements"] = {"cgroup_oom_kills": {"unit": "count", "kind": "counter", "total": 2}}
    assert ["oom"] == kinds(run)


def test_problems_come_before_hints() -> None:
    run = used(memory_peak_bytes=5 * GIB, cpu_mean_percent=10.0, cpu_peak_percent=10.0)
    run["provenance"] = {"left_running": 2, "collectors": {"perf": {"available": True, "failed": "no more"}}}
    assert ["over_memory", "left", "under_cpus", "incomplete"] == kinds(run)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([100 + 10 * n for n in range(20)], ["growth"]),
        ([100] * 20, []),
        ([100 + 10 * n for n in range(6)], []),
        ([10 + 90 * min(n, 2) for n in range(20)], []),
        ([300 - 10 * n for n in range(20)], []),
        ([100, 300] * 10, []),
    ],
    ids=["steady", "flat", "too few", "only at the start", "falling", "saw"],
)
def test_memory_that_grows_steadily_to_the_end_is_reported(levels: list[float], expected: list[str]) -> None:
    assert expected == kinds(used(), memory(*levels))


@pytest.mark.parametrize(("seconds", "expected"), [(12, ["growth"]), (6, [])], ids=["a leak", "a job that loads"])
def test_growth_is_distinguished_from_loading_by_its_time_and_not_by_the_number_of_windows(
    seconds: int, expected: list[str]
) -> None:
    windows = [WindowSample(0.05 * number, 5.0, 100.0 + number, 1) for number in range(1, 20 * seconds)]
    assert expected == kinds(used(), windows)


def test_a_line_through_points_on_it_is_straight() -> None:
    assert pytest.approx((2.0, 1.0)) == line_through([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)])


def test_a_lost_run_says_what_its_figures_are() -> None:
    run = used()
    run["outcome"] = {"status": "lost", "exit_code": None, "signal": None}
    assert ["incomplete"] == kinds(run)
