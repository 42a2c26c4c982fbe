"""Figures are compared only where they are of one measurement."""

from __future__ import annotations

from typing import Any

from jobmeter.analyse.same_source import NoCommonSource, SameSource, from_same_source


def run(source: str, **peaks: float) -> Any:
    """A run whose memory peak is from `source`, with the peaks that were measured."""
    measurements = {key: {"unit": "bytes", "kind": "gauge", "peak": peak} for key, peak in peaks.items()}
    return {"usage": {"memory_peak_bytes": {"value": peaks[source], "from": source}}, "measurements": measurements}


def test_a_figure_from_two_sources_is_taken_from_the_one_that_both_have() -> None:
    bare = run("rusage_maxrss", rusage_maxrss=80, cgroup_mem_peak=30, cgroup_file=0)
    contained = run("cgroup_mem_peak", cgroup_mem_peak=41, cgroup_file=0)
    common = from_same_source([bare], [contained], "memory_peak_bytes")
    assert SameSource("cgroup_mem_peak", [30], [41]) == common


def test_a_peak_with_page_cache_is_not_compared() -> None:
    """It is charged to whoever reads a file first, and that is the bare run."""
    bare = run("cgroup_held", cgroup_held=30, cgroup_mem_peak=90, cgroup_file=60)
    contained = run("cgroup_mem_peak", cgroup_held=35, cgroup_mem_peak=35, cgroup_file=0)
    common = from_same_source([bare], [contained], "memory_peak_bytes")
    assert SameSource("cgroup_held", [30], [35]) == common


def test_without_a_common_source_it_is_said_where_each_is_from() -> None:
    bare, contained = run("rusage_maxrss", rusage_maxrss=80), run("container_mem_peak", container_mem_peak=41)
    common = from_same_source([bare], [contained], "memory_peak_bytes")
    assert NoCommonSource("rusage_maxrss", "container_mem_peak") == common


def test_what_one_side_did_not_measure_is_no_figure() -> None:
    bare = run("cgroup_held", cgroup_held=30)
    nothing: Any = {"usage": {}, "measurements": {}}
    assert None is from_same_source([bare], [nothing], "memory_peak_bytes")
    assert None is from_same_source([bare], [bare], "cpu_seconds")


def test_what_perf_counted_until_it_was_stopped_is_not_compared() -> None:
    def used(perf: float, **provenance: str) -> Any:
        totals = {"perf_cpu_seconds": {"total": perf}, "rusage_cpu_seconds": {"total": 5.0}}
        usage = {"cpu_seconds": {"value": 5.0, "from": "rusage_cpu_seconds"}}
        return {"usage": usage, "measurements": totals, "provenance": {"collectors": {"perf": provenance}}}

    whole, stopped = used(5.1), used(0.1, failed="stopped after 0.10 s")
    assert SameSource("perf_cpu_seconds", [5.1], [5.1]) == from_same_source([whole], [whole], "cpu_seconds")
    assert SameSource("rusage_cpu_seconds", [5.0], [5.0]) == from_same_source([whole], [stopped], "cpu_seconds")
