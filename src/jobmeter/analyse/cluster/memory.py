"""Findings about memory: it is the limit, it only grows, or the object store is too small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from jobmeter.analyse.cluster.finding import ClusterFinding
from jobmeter.analyse.cluster.model import History, Node
from jobmeter.analyse.cluster.series import held_for, lasting
from jobmeter.analyse.cluster.shares import ClusterMoment, mean, node_moments, points, share, within
from jobmeter.analyse.cluster.thresholds import Thresholds
from jobmeter.analyse.findings import line_through
from jobmeter.units import share_text, text

_USED, _CAPACITY = "used_memory_bytes", "capacity_memory_bytes"
_FEW = 8
"""With fewer samples than this there is no trend."""
_STRAIGHT = 0.85
"""R² from which on memory grows steadily."""
_GROWTH = 0.02
"""Share of the capacity that memory must have grown by."""
_SETBACK = 0.1
"""Share of its growth that memory may have fallen by in between."""


def memory_bound(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """A finding for each node whose memory was nearly full for long enough."""
    return [finding for node in history.nodes.values() for finding in _bound(history, node, limits)]


def _bound(history: History, node: Node, limits: Thresholds) -> list[ClusterFinding]:
    moments = node_moments(history, node)
    full = points(moments, lambda each: (share(each.values, _USED, _CAPACITY) or 0.0) >= limits.high)
    full_spells = lasting(full, limits.seconds)
    if not full_spells:
        return []
    during = within(moments, full_spells)
    used = mean(during, lambda each: each.values.get(_USED)) or 0.0
    capacity = mean(during, lambda each: each.values.get(_CAPACITY)) or 1.0
    more = used / limits.high - capacity + _step(capacity)
    observation = f"{text(used, 'bytes')} of {text(capacity, 'bytes')} were in use{_full_in(moments, capacity)}"
    largest = _largest_task(history, during)
    action = f"add {text(more, 'bytes')} of memory to it, or run fewer tasks there at a time"
    if largest:
        action += f", `{largest}` first"
    return [
        ClusterFinding(
            "memory_bound",
            "problem",
            f"node {node.name}",
            observation,
            held_for(full_spells),
            action,
            f"{share_text(used / (capacity + more))} of its memory would be in use",
            {"add_memory_bytes": more},
        )
    ]


def _step(capacity: float) -> float:
    """A tenth of the capacity, to be added: with exactly what is missing, usage would stay at the threshold."""
    return capacity / 10


def _largest_task(history: History, during: Sequence[ClusterMoment]) -> str:
    sizes = {
        name: mean(during, lambda each, name=name: each.tasks.get(name, {}).get(_USED)) or 0.0  # type: ignore[misc]
        for name in history.task_stats
    }
    name = max(sizes, key=lambda each: sizes[each], default="")
    return name if sizes.get(name) else ""


def _full_in(moments: Sequence[ClusterMoment], capacity: float) -> str:
    levels = [(each.seconds, each.values[_USED]) for each in moments if _USED in each.values]
    slope, straight = line_through(levels) if len(levels) >= _FEW else (0.0, 0.0)
    if slope <= 0 or straight < _STRAIGHT or levels[-1][1] >= capacity:
        return ""
    return f", full in {text(round((capacity - levels[-1][1]) / slope), 'seconds')} at this rate"


def memory_growth(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """A finding for each node whose memory only grew, for long enough."""
    return [finding for node in history.nodes.values() for finding in _growth(history, node, limits)]


def _growth(history: History, node: Node, limits: Thresholds) -> list[ClusterFinding]:
    moments = [each for each in node_moments(history, node) if _USED in each.values]
    climb = _climb(moments)
    if len(climb) < _FEW or climb[-1].seconds - climb[0].seconds < limits.seconds:
        return []
    levels = [(each.seconds, each.values[_USED]) for each in climb]
    capacity = climb[-1].values.get(_CAPACITY, math.inf)
    grown, seconds = levels[-1][1] - levels[0][1], levels[-1][0] - levels[0][0]
    slope, straight = line_through(levels)
    if slope <= 0 or straight < _STRAIGHT or not grown >= _GROWTH * capacity:
        return []
    left = (capacity - levels[-1][1]) / slope
    largest = _largest_task(history, climb)
    whose = f" of `{largest}`" if largest else ""
    return [
        ClusterFinding(
            "memory_growth",
            "problem" if left < 3600 else "hint",
            f"node {node.name}",
            f"memory climbed by {text(grown, 'bytes')} to {text(levels[-1][1], 'bytes')} and never fell "
            f"by more than {share_text(_SETBACK)} of that",
            seconds,
            f"find what keeps memory{whose}: references that are not dropped, results that are not fetched",
            f"else it is full in {text(round(max(left, 0.0)), 'seconds')}",
            {"seconds_to_full": round(max(left, 0.0)), "bytes_per_hour": round(slope * 3600)},
        )
    ]


def _climb(moments: Sequence[ClusterMoment]) -> list[ClusterMoment]:
    """The last moments in which memory never fell by more than the share `_SETBACK` of its growth."""
    if not moments:
        return []
    start = len(moments) - 1
    newest = lowest = moments[-1].values[_USED]
    fallen = 0.0
    for at in range(len(moments) - 2, -1, -1):
        value = moments[at].values[_USED]
        fallen, lowest = max(fallen, value - lowest), min(lowest, value)
        # Falls are compared with the growth of the whole climb: at its newest samples there is hardly any growth yet.
        if value == lowest and fallen <= _SETBACK * (newest - lowest):
            start = at
    return list(moments[start:])


def spilling(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """A finding for each node that moved objects from the object store to the disk."""
    return [finding for node in history.nodes.values() for finding in _spilled(history, node)]


def _spilled(history: History, node: Node) -> list[ClusterFinding]:
    moments = [each for each in node_moments(history, node) if "spilled_bytes" in each.values]
    grown = seconds = 0.0
    for before, after in pairwise(moments):
        more = after.values["spilled_bytes"] - before.values["spilled_bytes"]
        if more > 0:
            grown, seconds = grown + more, seconds + after.span
    if not grown:
        return []
    total = max((each.values.get("total_object_store_bytes", 0.0) for each in moments), default=0.0)
    peak = max(each.values["spilled_bytes"] for each in moments)
    enough = math.ceil((total + peak) / 2**20) * 2**20
    return [
        ClusterFinding(
            "spilling",
            "problem",
            f"node {node.name}",
            f"at least {text(grown, 'bytes')} of objects were written to the disk; the object store has "
            f"{text(total, 'bytes')}",
            seconds,
            f"give it an object_store_memory of {text(enough, 'bytes')}, or drop references earlier",
            "objects would stay in memory",
            {"object_store_bytes": enough},
        )
    ]
