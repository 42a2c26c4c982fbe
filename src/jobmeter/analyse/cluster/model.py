"""The history of a cluster: nodes that join and leave, and samples of what each reserved and used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobmeter.analyse.cluster.measures import BY_KEY
from jobmeter.analyse.cluster.series import RunningStat, weighted

Values = Mapping[str, float]
"""Key → value; absent means not known."""

_MOST_SAMPLES = 4000
"""More samples are merged in pairs, to bound the memory of a monitor that runs for weeks. Means, peaks and minima stay
exact."""


class Node(NamedTuple):
    """One node, since it joined."""

    id: str
    name: str
    host: str  # the same for nodes on one machine
    scope: str  # what `used` counts: all of the `machine`, or the `processes` of the node
    joined: float  # seconds since monitoring began
    left: float | None = None
    lost: str | None = None  # why, if it did not leave on request


class Waiting(NamedTuple):
    """Tasks that wait for the same amounts."""

    request: Values  # cpus, gpus, memory_bytes, or the name of a custom resource
    tasks: int


class ClusterSample(NamedTuple):
    """The cluster at one time. Rates are means over the `span` before it."""

    seconds: float  # since monitoring began
    span: float  # since the sample before
    nodes: Mapping[str, Values]  # by id
    tasks: Mapping[str, Values] = {}  # by name
    waiting: tuple[Waiting, ...] = ()
    cluster: Values = {}  # actors, and other values that only the whole cluster has


class History:
    """The samples so far, and the figures over all of them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.samples: list[ClusterSample] = []
        self.requests: dict[str, Values] = {}  # name of tasks → what each task requests
        self.sample_count = 0
        self.node_stats: dict[str, dict[str, RunningStat]] = {}
        self.task_stats: dict[str, dict[str, RunningStat]] = {}
        self.cluster_stats: dict[str, RunningStat] = {}

    @property
    def seconds(self) -> float:
        return self.samples[-1].seconds if self.samples else 0.0

    def add(self, sample: ClusterSample) -> None:
        self.sample_count += 1
        self.samples.append(sample)
        for group, stats in ((sample.nodes, self.node_stats), (sample.tasks, self.task_stats)):
            for name, values in group.items():
                _count(stats.setdefault(name, {}), values, sample.span)
        _count(self.cluster_stats, cluster_values(sample, self.nodes), sample.span)
        if len(self.samples) > _MOST_SAMPLES:
            self.samples = _merged(self.samples)


def _count(stats: dict[str, RunningStat], values: Values, span: float) -> None:
    for key, value in values.items():
        stats.setdefault(key, RunningStat()).add(value, span)


def cluster_values(sample: ClusterSample, nodes: Mapping[str, Node]) -> dict[str, float]:
    """The values of all nodes of a sample combined, with those that only the whole cluster has."""
    total: dict[str, float] = {}
    hosts: dict[str, set[str]] = {}  # key → machines whose value was counted
    for node_id, values in sample.nodes.items():
        host = nodes[node_id].host if node_id in nodes else node_id
        for key, value in values.items():
            measure = BY_KEY.get(key)
            across = "sum" if measure is None else measure.across
            if across == "host":
                if host in hosts.setdefault(key, set()):
                    continue
                hosts[key].add(host)
            total[key] = max(total.get(key, value), value) if across == "max" else total.get(key, 0.0) + value
    total["nodes"] = float(len(sample.nodes))
    if sample.tasks:
        total["tasks_running"] = sum(task.get("running", 0.0) for task in sample.tasks.values())
    total["tasks_pending"] = float(sum(waiting.tasks for waiting in sample.waiting))
    return {**total, **sample.cluster}


def _merged(samples: list[ClusterSample]) -> list[ClusterSample]:
    return [
        samples[at] if at + 1 == len(samples) else _pair(samples[at], samples[at + 1])
        for at in range(0, len(samples), 2)
    ]


def _pair(first: ClusterSample, second: ClusterSample) -> ClusterSample:
    def each(one: Mapping[str, Values], other: Mapping[str, Values]) -> dict[str, Values]:
        names = dict.fromkeys([*one, *other])
        return {name: weighted(one.get(name, {}), first.span, other.get(name, {}), second.span) for name in names}

    return ClusterSample(
        second.seconds,
        first.span + second.span,
        each(first.nodes, second.nodes),
        each(first.tasks, second.tasks),
        second.waiting or first.waiting,
        weighted(first.cluster, first.span, second.cluster, second.span),
    )
