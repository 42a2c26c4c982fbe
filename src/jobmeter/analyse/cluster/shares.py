"""Shares of what there is: how much of its CPUs, memory and GPUs a node or a cluster used or reserved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobmeter.analyse.cluster.model import History, Node, Sample, Values, Waiting, cluster_values
from jobmeter.analyse.cluster.series import Point, Spell

_WAITING = 0.05
"""Share of the CPUs. Less waiting for CPUs than this is that of any busy machine."""


class Moment(NamedTuple):
    """The values of one node, or of all, that stand for `span` seconds."""

    seconds: float
    span: float
    values: Values
    tasks: Mapping[str, Values]
    waiting: Sequence[Waiting]


def cluster_moments(history: History) -> list[Moment]:
    return [_moment(sample, cluster_values(sample, history.nodes)) for sample in history.samples]


def node_moments(history: History, node: Node) -> list[Moment]:
    return [_moment(sample, sample.nodes[node.id]) for sample in history.samples if node.id in sample.nodes]


def _moment(sample: Sample, values: Values) -> Moment:
    return Moment(sample.seconds, sample.span, values, sample.tasks, sample.waiting)


def points(moments: Iterable[Moment], holds: Callable[[Moment], bool | None]) -> Iterator[Point]:
    """When a condition held; a moment of which it is not known is one in which it did not."""
    for moment in moments:
        yield Point(moment.seconds, moment.span, bool(holds(moment)))


def share(values: Values, part: str, whole: str) -> float | None:
    """None when one of them is not known, or there is nothing of it."""
    return values[part] / values[whole] if part in values and values.get(whole, 0.0) > 0 else None


def cpu_demand(values: Values) -> float | None:
    """CPUs that were busy, with those that processes waited for where they waited long."""
    if "used_cpus" not in values:
        return None
    waited = values.get("waited_cpus", 0.0)
    return values["used_cpus"] + (waited if waited >= _WAITING * values.get("capacity_cpus", math.inf) else 0.0)


def cpu_share(values: Values) -> float | None:
    """The demand for CPUs as a share of those there are."""
    demand, capacity = cpu_demand(values), values.get("capacity_cpus", 0.0)
    return demand / capacity if demand is not None and capacity > 0 else None


def within(moments: Iterable[Moment], found: Sequence[Spell]) -> list[Moment]:
    """The moments of these times."""
    return [
        moment
        for moment in moments
        if any(spell.start < moment.seconds <= spell.end + 1e-6 and moment.span > 0 for spell in found)
    ]


def mean(moments: Sequence[Moment], value: Callable[[Moment], float | None]) -> float | None:
    """Weighted by time, over the moments of which it is known."""
    known = [(amount, moment.span) for moment in moments if (amount := value(moment)) is not None]
    seconds = sum(span for _, span in known)
    return sum(amount * span for amount, span in known) / seconds if seconds > 0 else None


def percentile(moments: Sequence[Moment], value: Callable[[Moment], float | None], part: float) -> float | None:
    """What it was no higher than, for this part of the time."""
    known = sorted((amount, moment.span) for moment in moments if (amount := value(moment)) is not None)
    if not known:
        return None
    left = part * sum(span for _, span in known)
    for amount, span in known:
        left -= span
        if left <= 1e-9:
            return amount
    return known[-1][0]


def waiting_cpus(moment: Moment) -> float:
    """CPUs that those who wait request together."""
    return sum(each.request.get("cpus", 0.0) * each.tasks for each in moment.waiting)


def waiting_count(moment: Moment) -> int:
    return sum(each.tasks for each in moment.waiting)
