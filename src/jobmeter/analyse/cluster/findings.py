"""All findings about a cluster."""

from __future__ import annotations

from jobmeter.analyse.cluster.cpus import cpu_bound, over_reserved
from jobmeter.analyse.cluster.finding import ClusterFinding
from jobmeter.analyse.cluster.gpus import gpu_bound, idle_gpu
from jobmeter.analyse.cluster.memory import memory_bound, memory_growth, spilling
from jobmeter.analyse.cluster.model import History
from jobmeter.analyse.cluster.nodes import node_lost, skew, under_used
from jobmeter.analyse.cluster.thresholds import DEFAULT, Thresholds

_RULES = (
    node_lost,
    cpu_bound,
    over_reserved,
    memory_bound,
    memory_growth,
    gpu_bound,
    idle_gpu,
    spilling,
    skew,
    under_used,
)


def cluster_findings(history: History, limits: Thresholds = DEFAULT) -> list[ClusterFinding]:
    """The findings of all rules, problems first. They go by the time beyond a threshold, never by one sample."""
    findings = [finding for rule in _RULES for finding in rule(history, limits)]
    return sorted(findings, key=lambda each: each.severity != "problem")
