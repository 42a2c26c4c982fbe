"""Findings about nodes: lost nodes, nodes that are idle while others are full, more nodes than needed."""

from __future__ import annotations

import math

from jobmeter.analyse.cluster.finding import CLUSTER, ClusterFinding
from jobmeter.analyse.cluster.model import ClusterSample, History
from jobmeter.analyse.cluster.series import Point, held_for, lasting
from jobmeter.analyse.cluster.shares import (
    ClusterMoment,
    cluster_moments,
    cpu_share,
    mean,
    percentile,
    points,
    share,
    waiting_count,
    within,
)
from jobmeter.analyse.cluster.thresholds import Thresholds
from jobmeter.units import share_text, text

_MOSTLY = 0.95
"""Share of the time for which the remaining nodes must be enough."""


def node_lost(history: History, limits: Thresholds) -> list[ClusterFinding]:
    findings = []
    for node in history.nodes.values():
        if node.lost is None or node.left is None:
            continue
        stats = history.node_stats.get(node.id, {})
        cpus = stats["total_cpus"].last if "total_cpus" in stats else None
        missing = f"{text(cpus, 'count')} CPUs fewer" if cpus is not None else "one node fewer"
        findings.append(
            ClusterFinding(
                "node_lost",
                "problem",
                f"node {node.name}",
                f"it was lost {text(round(node.left), 'seconds')} after monitoring began: {node.lost}",
                max(history.seconds - node.left, 0.0),
                "see its raylet.out for why; start it again, or retry what ran there",
                f"the cluster has {missing} until then",
            )
        )
    return findings


def skew(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """A finding if some nodes were full while others were idle, for long enough."""

    def apart(sample: ClusterSample) -> tuple[str, str] | None:
        shares = {node: value for node, values in sample.nodes.items() if (value := cpu_share(values)) is not None}
        if len(shares) < 2:
            return None
        full, idle = max(shares, key=lambda each: shares[each]), min(shares, key=lambda each: shares[each])
        return (full, idle) if shares[full] >= limits.high and shares[idle] <= limits.low else None

    pairs = [(sample, apart(sample)) for sample in history.samples]
    skewed_spells = lasting(
        (Point(sample.seconds, sample.span, pair is not None) for sample, pair in pairs), limits.seconds
    )
    if not skewed_spells:
        return []
    chosen = [pair for sample, pair in pairs if pair and any(spell.covers(sample.seconds) for spell in skewed_spells)]
    full, idle = max(set(chosen), key=chosen.count)
    during = within(cluster_moments(history), skewed_spells)
    even = mean(during, lambda each: cpu_share(each.values)) or 0.0
    return [
        ClusterFinding(
            "skew",
            "hint",
            CLUSTER,
            f"node {_name(history, full)} was full while node {_name(history, idle)} was idle",
            held_for(skewed_spells),
            'spread the work: scheduling_strategy="SPREAD", and no placement that ties tasks to one node',
            f"every node would have {share_text(min(even, 1.0))} of its CPUs busy",
        )
    ]


def under_used(history: History, limits: Thresholds) -> list[ClusterFinding]:
    """A finding if little was reserved and little used, for long enough and for at least half of the time."""
    moments = cluster_moments(history)
    idle_spells = lasting(points(moments, lambda each: _is_low(each, limits)), limits.seconds)
    if not idle_spells or held_for(idle_spells) < history.seconds / 2:
        return []
    during = within(moments, idle_spells)
    used = mean(during, lambda each: cpu_share(each.values)) or 0.0
    reserved = mean(during, lambda each: share(each.values, "reserved_cpus", "total_cpus"))
    nodes = round(mean(during, lambda each: each.values.get("nodes")) or 1.0)
    needed = _nodes_needed(moments, nodes, limits)
    running = mean(during, lambda each: each.values.get("tasks_running")) or 0.0
    held = "" if reserved is None else f" and {share_text(reserved)} reserved"
    observation = f"{share_text(used)} of the CPUs were used{held}"
    actions, effects, amounts = [], [], {}
    if needed < nodes:
        actions.append(f"shrink to {needed} node{'s' * (needed != 1)}")
        effects.append(f"{nodes - needed} of {nodes} nodes would be free")
        amounts["nodes"] = float(needed)
    if running >= 0.5:
        level = max(used, reserved or 0.0, 0.01)
        parallel = max(math.floor(running * limits.high / level), round(running) + 1)
        actions.append(f"raise parallelism to {parallel:,}")
        effects.append(f"about {limits.high / level:.1f} times as much would be done at a time")
        amounts["tasks_at_a_time"] = float(parallel)
    if not actions:
        actions, effects = ["start work on it, or stop it"], ["nothing would wait for it"]
    return [
        ClusterFinding(
            "under_used",
            "hint",
            CLUSTER,
            observation,
            held_for(idle_spells),
            ", or ".join(actions),
            "; ".join(effects),
            amounts,
        )
    ]


def _is_low(moment: ClusterMoment, limits: Thresholds) -> bool:
    used = cpu_share(moment.values)
    reserved = share(moment.values, "reserved_cpus", "total_cpus") or 0.0
    gpus = share(moment.values, "used_gpus", "total_gpus") or 0.0
    return used is not None and max(used, reserved, gpus) <= limits.low and not waiting_count(moment)


def _nodes_needed(moments: list[ClusterMoment], nodes: int, limits: Thresholds) -> int:
    """How many nodes of the same size would have been enough nearly all the time."""
    shares = (
        percentile(moments, lambda each: cpu_share(each.values), _MOSTLY),
        percentile(moments, lambda each: share(each.values, "reserved_cpus", "total_cpus"), _MOSTLY),
        percentile(moments, lambda each: share(each.values, "used_memory_bytes", "capacity_memory_bytes"), _MOSTLY),
        percentile(moments, lambda each: share(each.values, "reserved_gpus", "total_gpus"), _MOSTLY),
    )
    return max(math.ceil(nodes * max(each or 0.0 for each in shares) / limits.high - 1e-6), 1)


def _name(history: History, node_id: str) -> str:
    return history.nodes[node_id].name if node_id in history.nodes else node_id
