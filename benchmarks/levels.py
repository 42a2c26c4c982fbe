"""Memory over time: what the loads `level-…` of loads.py really held, beside what a record says of it."""

from __future__ import annotations

from typing import Any, NamedTuple

KINDS = ("constant", "step-up", "step-down", "burst", "ramp")
SECONDS = (0.5, 3.0, 9.0)
HOUR, GIB = 3600.0, 1 << 30


class Levels(NamedTuple):
    """Bytes; of the minimum, the most it can have been: what the interpreter has before the load begins."""

    mean: float
    peak: float
    most_minimum: float
    gib_hours: float


def true_levels(course: dict[str, float], record: dict[str, Any]) -> Levels:
    """What the load reported of itself, over the time its record says it took, counted as its figures are."""
    mean, peak = (record["usage"][f"memory_{name}_bytes"]["from"] for name in ("mean", "peak"))
    own = course[_own(mean)]
    wall = record["wall_seconds"]
    # Before and after the load itself there is the interpreter alone.
    average = course["byte_seconds"] / wall + own
    return Levels(average, course["most"] + course[_own(peak)], own, average * wall / HOUR / GIB)


def reported_levels(record: dict[str, Any]) -> Levels:
    mean, peak, minimum = (record["usage"][f"memory_{name}_bytes"]["value"] for name in ("mean", "peak", "min"))
    return Levels(mean, peak, minimum, mean * record["wall_seconds"] / HOUR / GIB)


def _own(key: str) -> str:
    """Which account of the interpreter's own memory a figure of this source has in it."""
    if key.startswith("cgroup_"):
        return "charged"
    return "shared_once" if key in ("proc_memory", "proc_pss_total") else "resident"
