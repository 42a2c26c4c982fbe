"""Shares of the capacity: how much of its CPUs, memory and GPUs a node or a cluster used or reserved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobmeter.analyse.cluster.model import ClusterSample, History, Node, Values, Waiting, cluster_values
from jobmeter.analyse.cluster.series import Point, Spell

_WAITING = 0.05
"""Share of the CPUs. Waits for fewer CPUs than this occur on any busy machine, and do not count."""


class ClusterMoment(NamedTuple):
    """The values of one node, or of the whole cluster, over `span` seconds."""

    seconds: float
    span: float
    values: Values
    tasks: Mapping[str, Values]
    waiting: Sequence[Waiting]


def cluster_moments(history: History) -> list[ClusterMoment]:
    return [_moment(sample, cluster_values(sample, history.nodes)) for sample in history.samples]


def node_moments(history: History, node: Node) -> list[ClusterMoment]:
    return [_moment(sample, sample.nodes[node.id]) for sample in history.samples if node.id in sample.nodes]


def _moment(sample: ClusterSample, values: Values) -> ClusterMoment:
    return ClusterMoment(sample.seconds, sample.span, values, sample.tasks, sample.waiting)


def points(moments: Iterable[ClusterMoment], holds: Callable[[ClusterMoment], bool | None]) -> Iterator[Point]:
    """A point for each moment: whether a condition held. If that is not known, it did not."""
    for moment in moments:
        yield Point(moment.seconds, moment.span, bool(holds(moment)))


def share(values: Values, part: str, whole: str) -> float | None:
    """The value `part` as a share of the value `whole`; None if one of them is not known, or `whole` is 0."""
    return values[part] / values[whole] if part in values and values.get(whole, 0.0) > 0 else None


def cpu_demand(values: Values) -> float | None:
    """CPUs that were busy, plus those that processes waited for if these are many; None if not known."""
    if "used_cpus" not in values:
        return None
    waited = values.get("waited_cpus", 0.0)
    return values["used_cpus"] + (waited if waited >= _WAITING * values.get("capacity_cpus", math.inf) else 0.0)


def cpu_share(values: Values) -> float | None:
    """The demand for CPUs as a share of the capacity; None if not known."""
    demand, capacity = cpu_demand(values), values.get("capacity_cpus", 0.0)
    return demand / capacity if demand is not None and capacity > 0 else None


def within(moments: Iterable[ClusterMoment], spells: Sequence[Spell]) -> list[ClusterMoment]:
    """The moments within these periods."""
    return [
        moment
        for moment in moments
        if any(spell.start < moment.seconds <= spell.end + 1e-6 and moment.span > 0 for spell in spells)
    ]


def mean(moments: Sequence[ClusterMoment], value: Callable[[ClusterMoment], float | None]) -> float | None:
    """The mean of a value weighted by time, over the moments for which it is known; None if there are none."""
    amounts = [(amount, moment.span) for moment in moments if (amount := value(moment)) is not None]
    seconds = sum(span for _, span in amounts)
    return sum(amount * span for amount, span in amounts) / seconds if seconds > 0 else None


def percentile(
    moments: Sequence[ClusterMoment], value: Callable[[ClusterMoment], float | None], part: float
) -> float | None:
    """The level that a value did not exceed for the share `part` of the time; None if the value is never known."""
    amounts = sorted((amount, moment.span) for moment in moments if (amount := value(moment)) is not None)
    if not amounts:
        return None
    left = part * sum(span for _, span in amounts)
    for amount, span in amounts:
        left -= span
        if left <= 1e-9:
            return amount
    return amounts[-1][0]


def waiting_cpus(moment: ClusterMoment) -> float:
    """CPUs that all waiting tasks request together."""
    return sum(each.request.get("cpus", 0.0) * each.tasks for each in moment.waiting)


def waiting_count(moment: ClusterMoment) -> int:
    return sum(each.tasks for each in moment.waiting)
