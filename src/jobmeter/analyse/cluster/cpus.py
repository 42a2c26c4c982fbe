"""Findings about CPUs: they are really the limit, or they are only reserved."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jobmeter.analyse.cluster.finding import CLUSTER, ClusterFinding
from jobmeter.analyse.cluster.model import History
from jobmeter.analyse.cluster.series import held_for, lasting
from jobmeter.analyse.cluster.shares import (
    ClusterMoment,
    cluster_moments,
    cpu_demand,
    cpu_share,
    mean,
    node_moments,
    percentile,
    points,
    share,
    waiting_count,
    waiting_cpus,
    within,
)
from jobmeter.analyse.cluster.thresholds import Thresholds
from jobmeter.units import share_text, text

_MARGIN = 1.2
"""Factor on what tasks used, for the recommended reservation."""
_FRACTIONS = (0.1, 0.25, 0.5, 1.0)
"""Recommended reservations of up to one CPU."""
_LEAST_SHOWN = 0.01
"""Fewer CPUs than this are not shown as a number."""


def cpu_bound(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """A finding for the cluster, else for each node, whose CPUs were really busy for long enough."""
    whole = _bound(cluster_moments(history), CLUSTER, limits)
    if whole or len(history.nodes) < 2:
        return whole
    return [
        finding
        for node in history.nodes.values()
        for finding in _bound(node_moments(history, node), f"node {node.name}", limits)
    ]


def _bound(moments: Sequence[ClusterMoment], subject: str, limits: Thresholds) -> list[ClusterFinding]:
    busy_spells = lasting(points(moments, lambda each: (cpu_share(each.values) or 0.0) >= limits.high), limits.seconds)
    if not busy_spells:
        return []
    during = within(moments, busy_spells)
    demand = mean(during, lambda each: cpu_demand(each.values)) or 0.0
    used = mean(during, lambda each: each.values.get("used_cpus")) or 0.0
    capacity = mean(during, lambda each: each.values.get("capacity_cpus")) or 1.0
    wanted = mean(during, waiting_cpus) or 0.0
    count = round(mean(during, waiting_count) or 0.0)
    more = max(math.ceil(max(demand / limits.high - capacity, wanted) - 1e-6), 1)
    observation = f"{_cpus(used)} of {_cpus(capacity)} were busy"
    if demand - used >= 0.1:
        observation += f", and processes waited for {_number(demand - used)} more"
    if count:
        observation += f"; {_tasks(count)} waited for CPUs"
    effect = f"use would be {share_text(min(demand / (capacity + more), 1.0))} of the CPUs"
    if count and subject == CLUSTER:
        effect = f"the {_tasks(count)} that wait would run at once"
    return [
        ClusterFinding(
            "cpu_bound",
            "problem",
            subject,
            observation,
            held_for(busy_spells),
            f"add {_cpus(more)}",
            effect,
            {"add_cpus": more},
        )
    ]


def over_reserved(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """Findings about tasks that reserve CPUs which they do not use, by name if the requests of tasks are known."""
    moments = cluster_moments(history)
    idle_spells = lasting(points(moments, lambda each: _is_idle(each, limits)), limits.seconds)
    if not idle_spells:
        return []
    during, seconds = within(moments, idle_spells), held_for(idle_spells)
    named = [
        finding
        for name, request in history.requests.items()
        if request.get("cpus", 0.0) > 0
        for finding in _by_name(name, request["cpus"], during, seconds, limits)
    ]
    return named or [_unnamed(during, seconds)]


def _is_idle(moment: ClusterMoment, limits: Thresholds) -> bool:
    """Whether nearly all CPUs are reserved, and tasks neither use most of them nor wait for CPUs."""
    reserved = share(moment.values, "reserved_cpus", "total_cpus")
    used = _task_demand(moment)
    return (
        reserved is not None
        and reserved >= limits.high
        and used is not None
        and used <= limits.low * moment.values["reserved_cpus"]
    )


def _task_demand(moment: ClusterMoment) -> float | None:
    """CPUs that tasks use or are ready to use; of all processes, if the usage of tasks is not known.

    None if a task ran for which it is not known whether it waited for CPUs.
    """
    measured_tasks = [task for task in moment.tasks.values() if "used_cpus" in task]
    if any("waited_cpus" not in task for task in measured_tasks):
        return None
    if measured_tasks:
        return sum(task["used_cpus"] + task["waited_cpus"] for task in measured_tasks)
    return cpu_demand(moment.values)


def _by_name(
    name: str, reserved: float, during: Sequence[ClusterMoment], seconds: float, limits: Thresholds
) -> list[ClusterFinding]:
    def each(moment: ClusterMoment) -> float | None:
        task = moment.tasks.get(name, {})
        if not task.get("running") or "used_cpus" not in task or "waited_cpus" not in task:
            return None
        return (task["used_cpus"] + task["waited_cpus"]) / task["running"]

    used, mostly = mean(during, each), percentile(during, each, 0.9)
    if used is None or mostly is None or used > limits.low * reserved:
        return []
    better = right_size(mostly)
    if better >= reserved:
        return []
    running = mean(during, lambda moment: moment.tasks.get(name, {}).get("running")) or 0.0
    waiting = round(mean(during, waiting_count) or 0.0)
    total = mean(during, lambda moment: moment.values.get("total_cpus")) or 0.0
    possible = max(math.floor(total / better + 1e-6), 1)
    queue = f"; {_tasks(waiting)} waited for CPUs meanwhile" if waiting else ""
    return [
        ClusterFinding(
            "over_reserved",
            "problem" if waiting else "hint",
            f"task {name}",
            f"`{name}` reserves {_cpus(reserved)} and uses {_number(used)}{queue}",
            seconds,
            f"lower num_cpus of `{name}` to {_number(better)}",
            f"up to {possible:,} could run at a time instead of {max(round(running), 1):,}",
            {"num_cpus": better, "tasks_at_a_time": possible},
        )
    ]


def _unnamed(during: Sequence[ClusterMoment], seconds: float) -> ClusterFinding:
    reserved = mean(during, lambda moment: moment.values.get("reserved_cpus")) or 0.0
    used = mean(during, _task_demand) or 0.0
    waiting = round(mean(during, waiting_count) or 0.0)
    queue = f"; {_tasks(waiting)} waited for CPUs meanwhile" if waiting else ""
    free = reserved - math.ceil(used * _MARGIN)
    return ClusterFinding(
        "over_reserved",
        "problem" if waiting else "hint",
        CLUSTER,
        f"{_cpus(reserved)} are reserved and {_number(used)} used{queue}",
        seconds,
        "lower num_cpus of the running tasks to what they use",
        f"about {_cpus(free)} more could be reserved" if free >= _LEAST_SHOWN else "",
        {},
    )


def right_size(used: float) -> float:
    """CPUs to reserve for a task that uses `used` CPUs; above one CPU only whole CPUs, as Ray requires."""
    wanted = used * _MARGIN
    return next((size for size in _FRACTIONS if wanted <= size), float(math.ceil(wanted - 1e-6)))


def _cpus(count: float) -> str:
    return f"{_number(count)} CPU{'s' * (round(count, 2) != 1)}"


def _number(value: float) -> str:
    if value < _LEAST_SHOWN:
        return "almost none"
    return text(round(value, 2 if value < 1 else 1), "count")


def _tasks(count: int) -> str:
    return f"{count:,} task{'s' * (count != 1)}"
