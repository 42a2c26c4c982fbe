"""The types of the report of a cluster, and one line about each field. The JSON Schema is generated from them.

As in the run record, absent means not measured, or not known, and readers ignore fields that they do not know.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from jobmeter.record.types import Amount, Count, Seconds, Timestamp


class FigureOverTime(TypedDict):
    """One quantity over the time that was watched."""

    unit: Annotated[str, "Its unit."]
    mean: Annotated[float, "The mean, weighted by time."]
    peak: Annotated[float, "The highest value."]
    min: Annotated[float, "The lowest value."]
    last: Annotated[float, "The last value."]
    seconds: Annotated[Seconds, "The time that the values stand for."]


Figures = dict[str, FigureOverTime]


class _NodeAlways(TypedDict):
    id: Annotated[str, "As the cluster names it."]
    name: Annotated[str, "For people: its host, and a part of its id where several nodes share one."]
    scope: Annotated[
        Literal["machine", "processes"],
        "What `used_…` counts: the whole machine; or the processes of the node, where it has not all of the machine.",
    ]
    joined_seconds: Annotated[Seconds, "When it joined, since monitoring began; 0 if it was there."]
    figures: Annotated[Figures, "What it reserved and used."]


class NodeReport(_NodeAlways, total=False):
    """One node."""

    left_seconds: Annotated[Seconds, "When it left."]
    lost: Annotated[str, "Why it left, if it was lost; absent if it left on request."]


class _TaskAlways(TypedDict):
    name: Annotated[str, "Their name; of an actor, its class."]
    figures: Annotated[Figures, "How many ran and waited, and what they used together."]


class TaskReport(_TaskAlways, total=False):
    """All tasks of one name, or all actors of one class."""

    request: Annotated[dict[str, float], "What each of them requests: cpus, gpus, memory_bytes, custom resources."]


class FindingReport(TypedDict):
    """Something worth reporting."""

    kind: Annotated[str, "Which: cpu_bound, over_reserved, memory_bound and so on."]
    severity: Annotated[Literal["problem", "hint"], "How bad it is."]
    subject: Annotated[str, "`cluster`, `node NAME` or `task NAME`."]
    seen: Annotated[str, "What was seen."]
    seconds: Annotated[Seconds, "For how long."]
    action: Annotated[str, "What to do."]
    effect: Annotated[str, "What that would bring."]
    amounts: Annotated[dict[str, float], "The numbers of the action, by name."]


class ThresholdReport(TypedDict):
    """From where on something is a finding."""

    high_percent: Annotated[Amount, "More of something than this is nearly all of it."]
    low_percent: Annotated[Amount, "Less of something than this is little of it."]
    after_seconds: Annotated[Seconds, "How long it must have been so."]


class _ReportAlways(TypedDict):
    schema: Literal["jobmeter.cluster/1"]
    id: Annotated[str, "Its id in the store."]
    engine: Annotated[str, "What kind of cluster: ray or local."]
    address: Annotated[str, "Where it is."]
    started: Annotated[Timestamp, "When monitoring began."]
    seconds: Annotated[Seconds, "How long it was watched."]
    interval_seconds: Annotated[Seconds, "The time between two samples."]
    samples: Annotated[Count, "How many samples there are."]
    thresholds: ThresholdReport
    cluster: Annotated[Figures, "All nodes together, with the number of nodes, tasks and actors."]
    nodes: list[NodeReport]
    tasks: list[TaskReport]
    findings: list[FindingReport]
    notes: Annotated[list[str], "What could not be read, and why."]


class ClusterReport(_ReportAlways, total=False):
    """What a cluster reserved and used while it was watched, and what to change."""

    ended: Annotated[Timestamp, "When monitoring ended; absent while it goes on, or if it was killed."]
    monitor_cpu_seconds: Annotated[Seconds, "CPU time that monitoring used, on all nodes together."]
