from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.timeline import WindowSample, samples, summarise


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            {"perf_cpu_seconds": 5.0, "proc_cpu_percent": 99.0, "cgroup_held": [7, 5], "proc_processes": [3, 2.5]},
            WindowSample(10.0, 50.0, 7, 3),
        ),
        ({"proc_cpu_percent": [99.0, 80.0], "proc_rss_total": 4}, WindowSample(10.0, 80.0, 4, None)),
        ({"cgroup_cpu_seconds": 1.0, "perf_cpu_seconds": 5.0, "proc_pss_total": 1}, WindowSample(10.0, 10.0, 1, None)),
        ({"perf_cpu_seconds": 0.1, "proc_cpu_seconds": 5.0}, WindowSample(10.0, 50.0, None, None)),
        ({"perf_cpu_seconds": 5.0, "proc_cpu_seconds": 5.2}, WindowSample(10.0, 50.0, None, None)),
        ({"rusage_cpu_seconds": 100.0}, WindowSample(10.0, None, None, None)),
        ({}, WindowSample(10.0, None, None, None)),
    ],
    ids=[
        "counter first",
        "gauge",
        "cgroup before perf",
        "perf was stopped",
        "ticks",
        "rusage is no rate",
        "nothing",
    ],
)
def test_a_window_gives_the_sample_of_the_best_source(cells: dict[str, Any], expected: WindowSample) -> None:
    assert [expected] == samples([(10.0, cells)])


def test_a_rate_is_over_the_time_since_the_window_before() -> None:
    windows = [(10.0, {"perf_cpu_seconds": 5.0}), (12.0, {"perf_cpu_seconds": 2.0})]
    assert [50.0, 100.0] == [sample.cpu_percent for sample in samples(windows)]


def test_a_window_that_lasted_no_time_has_no_rate() -> None:
    windows = [(10.0, {"perf_cpu_seconds": 5.0}), (10.0, {"perf_cpu_seconds": 0.1})]
    assert [50.0, None] == [sample.cpu_percent for sample in samples(windows)]


def test_windows_add_up_to_the_measurements_of_a_record() -> None:
    described = {
        "a": {"unit": "bytes", "kind": "gauge"},
        "b": {"unit": "seconds", "kind": "counter"},
        "c": {"unit": "text", "kind": "label"},
        "d": {"unit": "text", "kind": "category"},
    }
    windows: list[tuple[float, dict[str, Any]]] = [
        (10.0, {"a": [10, 8], "b": 1.5, "c": "x", "d": {"R": 1.0}}),
        (40.0, {"a": 4, "b": 0.5, "c": "y", "d": {"R": 0.5, "S": 0.5}}),
        (40.0, {"unknown": 1}),
    ]
    assert {
        "a": {"unit": "bytes", "kind": "gauge", "peak": 10, "mean": 5},
        "b": {"unit": "seconds", "kind": "counter", "total": 2.0},
        "c": {"unit": "text", "kind": "label", "last": "y", "distinct": ["x", "y"]},
        "d": {"unit": "text", "kind": "category", "share": {"R": 0.625, "S": 0.375}},
    } == summarise(windows, described)


def test_cells_that_are_no_numbers_make_no_samples() -> None:
    cells: list[dict[str, Any]] = [
        {"proc_rss_total": "much"},
        {"proc_rss_total": [1]},
        {"proc_cpu_seconds": [1, 2]},
        {"proc_rss_total": 5},
    ]
    taken = samples((float(number), cell) for number, cell in enumerate(cells, start=1))
    assert [None, None, None, 5] == [sample.memory_bytes for sample in taken]
    assert [None] * 4 == [sample.cpu_percent for sample in taken]
