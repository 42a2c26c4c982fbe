"""The report of a cluster: figures over time of every node, of tasks by name, and the findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jobmeter.analyse.cluster.findings import cluster_findings
from jobmeter.analyse.cluster.measures import unit_of
from jobmeter.analyse.cluster.model import History, Node
from jobmeter.analyse.cluster.series import RunningStat
from jobmeter.analyse.cluster.thresholds import Thresholds

if TYPE_CHECKING:
    from jobmeter.record.cluster_types import ClusterReport, Figures, FindingReport, NodeReport, TaskReport

_MOST_TASKS = 200
"""Most names of tasks that a report lists: those that used most CPU."""


def cluster_report(history: History, about: Mapping[str, Any], limits: Thresholds) -> ClusterReport:
    """The report of a cluster. `about` has what the history lacks: id, engine, address, start and end, notes."""
    report: ClusterReport = {
        "schema": "jobmeter.cluster/1",
        "id": about["id"],
        "engine": about["engine"],
        "address": about["address"],
        "started": about["started"],
        "seconds": round(history.seconds, 3),
        "interval_seconds": about["interval_seconds"],
        "samples": history.sample_count,
        "thresholds": {
            "high_percent": round(100 * limits.high, 3),
            "low_percent": round(100 * limits.low, 3),
            "after_seconds": limits.seconds,
        },
        "cluster": _figures(history.cluster_stats),
        "nodes": [_node(history, node) for node in history.nodes.values()],
        "tasks": _tasks(history),
        "findings": _findings(history, limits),
        "notes": list(about.get("notes", ())),
    }
    if "ended" in about:
        report["ended"] = about["ended"]
    if "monitor_cpu_seconds" in about:
        report["monitor_cpu_seconds"] = about["monitor_cpu_seconds"]
    return report


def _figures(stats: Mapping[str, RunningStat]) -> Figures:
    return {
        key: {
            "unit": unit_of(key),
            "mean": _round(stat.mean),
            "peak": _round(stat.peak),
            "min": _round(stat.minimum),
            "last": _round(stat.last),
            "seconds": round(stat.seconds, 3),
        }
        for key, stat in stats.items()
    }


def _node(history: History, node: Node) -> NodeReport:
    entry: NodeReport = {
        "id": node.id,
        "name": node.name,
        "scope": "machine" if node.scope == "machine" else "processes",
        "joined_seconds": round(node.joined, 3),
        "figures": _figures(history.node_stats.get(node.id, {})),
    }
    if node.left is not None:
        entry["left_seconds"] = round(node.left, 3)
    if node.lost is not None:
        entry["lost"] = node.lost
    return entry


def _tasks(history: History) -> list[TaskReport]:
    names = dict.fromkeys([*history.task_stats, *history.requests])
    entries: list[TaskReport] = []
    for name in names:
        entry: TaskReport = {"name": name, "figures": _figures(history.task_stats.get(name, {}))}
        if name in history.requests:
            entry["request"] = dict(history.requests[name])
        if entry["figures"]:
            entries.append(entry)
    return sorted(entries, key=_cpu, reverse=True)[:_MOST_TASKS]


def _cpu(entry: TaskReport) -> float:
    figure = entry["figures"].get("used_cpus")
    return 0.0 if figure is None else figure["mean"] * figure["seconds"]


def _findings(history: History, limits: Thresholds) -> list[FindingReport]:
    return [
        {
            "kind": each.kind,
            "severity": "problem" if each.severity == "problem" else "hint",
            "subject": each.subject,
            "seen": each.seen,
            "seconds": round(each.seconds, 3),
            "action": each.action,
            "effect": each.effect,
            "amounts": {name: _round(value) for name, value in each.amounts.items()},
        }
        for each in cluster_findings(history, limits)
    ]


def _round(value: float) -> float:
    """Round to a whole number from a million on (bytes), else to three decimals: more is noise."""
    return float(round(value)) if abs(value) >= 1e6 else round(value, 3)
