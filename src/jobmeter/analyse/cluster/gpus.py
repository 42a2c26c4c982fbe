"""Findings about GPUs: they are really the limit, or they are only reserved."""

from __future__ import annotations

import math

from jobmeter.analyse.cluster.finding import CLUSTER, ClusterFinding
from jobmeter.analyse.cluster.model import History
from jobmeter.analyse.cluster.series import held_for, lasting
from jobmeter.analyse.cluster.shares import ClusterMoment, cluster_moments, mean, points, share, within
from jobmeter.analyse.cluster.thresholds import Thresholds
from jobmeter.units import share_text, text


def gpu_bound(history: History, limits: Thresholds) -> list[ClusterFinding]:
    moments = cluster_moments(history)
    busy = points(moments, lambda each: (share(each.values, "used_gpus", "total_gpus") or 0.0) >= limits.high)
    busy_spells = lasting(busy, limits.seconds)
    if not busy_spells:
        return []
    during = within(moments, busy_spells)
    used = mean(during, lambda each: each.values.get("used_gpus")) or 0.0
    total = mean(during, lambda each: each.values.get("total_gpus")) or 1.0
    wanted = mean(during, _waiting_gpus) or 0.0
    more = max(math.ceil(max(used / limits.high - total, wanted) - 1e-6), 1)
    queue = f"; {text(wanted, 'count')} more are requested by waiting tasks" if wanted else ""
    return [
        ClusterFinding(
            "gpu_bound",
            "problem",
            CLUSTER,
            f"{_number(used)} of {_gpus(total)} were busy{queue}",
            held_for(busy_spells),
            f"add {_gpus(more)}",
            f"use would be {share_text(min((used + wanted) / (total + more), 1.0))} of the GPUs",
            {"add_gpus": more},
        )
    ]


def idle_gpu(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """A finding if GPUs were reserved and hardly used, for long enough."""
    moments = cluster_moments(history)

    def is_idle(moment: ClusterMoment) -> bool:
        reserved, used = moment.values.get("reserved_gpus", 0.0), moment.values.get("used_gpus")
        return reserved > 0 and used is not None and used <= limits.low * reserved

    idle_spells = lasting(points(moments, is_idle), limits.seconds)
    if not idle_spells:
        return []
    during = within(moments, idle_spells)
    used = mean(during, lambda each: each.values.get("used_gpus")) or 0.0
    reserved = mean(during, lambda each: each.values.get("reserved_gpus")) or 0.0
    wanted = mean(during, _waiting_gpus) or 0.0
    enough = max(math.ceil(used / limits.high - 1e-6), 0)
    holders = [name for name, request in history.requests.items() if request.get("gpus", 0.0) > 0]
    names = ", ".join(f"`{name}`" for name in holders) or "what runs"
    return [
        ClusterFinding(
            "idle_gpu",
            "problem" if wanted else "hint",
            CLUSTER,
            f"{_gpus(reserved)} are reserved and {_number(used)} used",
            held_for(idle_spells),
            f"lower num_gpus of {names}: several can share one; {_gpus(max(enough, 1))} would do",
            f"{_gpus(max(reserved - max(enough, 1), 0.0))} would be free",
            {"gpus": max(enough, 1)},
        )
    ]


def _waiting_gpus(moment: ClusterMoment) -> float:
    return sum(each.request.get("gpus", 0.0) * each.tasks for each in moment.waiting)


def _gpus(count: float) -> str:
    return f"{_number(count)} GPU{'s' * (round(count, 2) != 1)}"


def _number(value: float) -> str:
    return text(round(value, 2), "count")
