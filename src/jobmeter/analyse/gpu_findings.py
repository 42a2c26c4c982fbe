"""Findings about the GPUs of a run: idle, full, slowed down."""

from __future__ import annotations

from jobmeter.analyse.finding import Finding
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.record.read import figure_value, measured
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_SHORTEST = 10.0
"""Seconds. A shorter run has no findings: a GPU program needs some time to start."""
_IDLE = 5.0
"""Percent of the time below which a GPU counts as idle."""
_FULL = 95.0
_SLOWED = 0.1
"""Share of the time from which on a slow-down is reported."""


def gpu_findings(record: Record) -> list[Finding]:
    """The findings about GPUs; none for a run without a GPU, or for a short run."""
    wall = record.get("wall_seconds") or 0.0
    if wall < _SHORTEST:
        return []
    return [*_idle(record, wall), *_full(record), *_slowed(record, wall)]


def _idle(record: Record, wall: float) -> list[Finding]:
    requested = int(record["requirement"].get("gpus", 0))
    given = max(requested, len(record.get("devices", [])))
    busy = figure_value(record, "gpu_seconds")
    if busy is None and figure_value(record, "gpus_peak") == 0:
        busy = 0.0  # GPUs were measured, and no process used one
    if not given or busy is None:
        return []
    percent = 100 * busy / (wall * given)
    if percent >= _IDLE:
        return []
    gpus = "Its GPU" if given == 1 else f"Its {given} GPUs"
    worked = "did nothing" if not busy else f"worked {text(percent, 'percent')} of the time"
    return [Finding("idle_gpu", "hint", f"{gpus} {worked}.")]


def _full(record: Record) -> list[Finding]:
    for prefix in ("nvml", "rocm"):
        percent = measured(record, f"{prefix}_memory_percent").get("peak", 0)
        if percent >= _FULL:
            return [Finding("gpu_memory", "hint", f"The memory of its GPU was {text(percent, 'percent')} full.")]
    return []


def _slowed(record: Record, wall: float) -> list[Finding]:
    slowed = measured(record, "nvml_throttled_seconds").get("total", 0)
    if slowed < _SLOWED * wall:
        return []
    reasons = dict.fromkeys(reason for device in record.get("devices", []) for reason in device.get("throttled_by", ()))
    why = f": {', '.join(reasons)}" if reasons else ""
    return [Finding("gpu_throttled", "hint", f"Its GPU was slowed down for {text(slowed, 'seconds')}{why}.")]
