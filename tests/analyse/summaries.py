"""Summaries of runs as records have them, and the descriptions of what was measured."""

from __future__ import annotations

from typing import Any

DESCRIBED = {
    "cgroup_cpu_seconds": {"quality": "exact"},
    "perf_cpu_seconds": {"quality": "exact"},
    "rusage_cpu_seconds": {"quality": "at least"},
    "proc_cpu_seconds": {"quality": "at least"},
    "cgroup_mem_peak": {"quality": "exact"},
    "cgroup_held": {"quality": "sampled"},
    "proc_rss_total": {"quality": "sampled"},
    "proc_pss_total": {"quality": "sampled"},
}


def totals(**values: float) -> dict[str, dict[str, Any]]:
    return {key: {"unit": "seconds", "kind": "counter", "total": value} for key, value in values.items()}


def peaks(**values: float) -> dict[str, dict[str, Any]]:
    """Levels whose mean is half their peak."""
    return {
        key: {"unit": "bytes", "kind": "gauge", "peak": value, "mean": value / 2, "p95": value}
        for key, value in values.items()
    }
