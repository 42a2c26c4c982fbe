"""Statistics of groups of runs: quantiles, totals, and how well they used what they requested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.analyse.cost import JOULES_PER_KWH, NO_FACTORS, Factors, costs
from jobmeter.analyse.headline_table import HEADLINE, memory_first
from jobmeter.model import Status


class SpreadFigure(NamedTuple):
    """A figure that is reported as p50, p95 and max."""

    name: str
    unit: str


SPREAD_FIGURES = (
    SpreadFigure("wall_seconds", "seconds"),
    *(SpreadFigure(figure.name, figure.unit) for figure in memory_first(row for row in HEADLINE if row.in_stats)),
)
SPREAD = tuple(figure.name for figure in SPREAD_FIGURES)
UNENDED = (Status.RUNNING, Status.DETACHED)
"""The statuses of runs whose success is not known."""
LEVELS = {"p50": 0.5, "p95": 0.95, "max": 1.0}

_HOUR = 3600.0
_GIB = 2.0**30


_ENERGY = ("energy_joules", "gpu_seconds")

RunFigures = tuple[Any, ...]
"""One run: its group, its source, then FIGURES in their order; None: not measured, or not requested."""
FIGURES = tuple(
    dict.fromkeys(("status", "wall_seconds", "cpu_seconds", "memory_mean_bytes", "requirement_cpus", *_ENERGY, *SPREAD))
)


class GroupTotals(NamedTuple):
    """The sums over a group, from which rates follow; None where no run has the figure."""

    runs: int
    ended: int
    completed: int
    wall_seconds: float | None
    cpu_seconds: float | None
    byte_seconds: float | None  # mean memory, or its peak where no mean is known, times the time it was held
    requested_cpu_seconds: float | None  # CPUs requested, times the time they were held
    used_of_requested: float | None  # CPU time of the runs that requested CPUs
    energy_joules: float | None = None
    gpu_seconds: float | None = None


Spread = dict[str, float]
"""`{"p50": …, "p95": …, "max": …}`"""


class GroupStatistics(NamedTuple):
    group: str | None  # None: runs without the label
    source: str  # figures of different tools are never in one group
    totals: GroupTotals
    spreads: dict[str, Spread]


def position(count: int, level: float) -> tuple[int, float]:
    """The position of a quantile in `count` sorted values: an index, and the fraction of the way to the next."""
    place = (count - 1) * level
    return int(place), place - int(place)


def quantile(ordered: Sequence[float], level: float) -> float:
    """The quantile of sorted values, by linear interpolation between two of them (numpy's default)."""
    index, part = position(len(ordered), level)
    value = ordered[index]
    return value + (ordered[index + 1] - value) * part if part else value


def spread(values: Iterable[float]) -> Spread:
    """p50, p95 and max; empty for no values."""
    ordered = sorted(values)
    return {name: quantile(ordered, level) for name, level in LEVELS.items()} if ordered else {}


def total(columns: Mapping[str, Sequence[Any]]) -> GroupTotals:
    """The sums over the columns named in FIGURES."""
    statuses, wall, cpu = columns["status"], columns["wall_seconds"], columns["cpu_seconds"]
    requested = [
        (cpus * seconds, used)
        for cpus, seconds, used in zip(columns["requirement_cpus"], wall, cpu)
        if cpus is not None and seconds is not None and used is not None
    ]
    held = [
        level * seconds
        for mean, peak, seconds in zip(columns["memory_mean_bytes"], columns["memory_peak_bytes"], wall)
        if (level := peak if mean is None else mean) is not None and seconds is not None
    ]
    return GroupTotals(
        runs=len(statuses),
        ended=len(statuses) - sum(map(statuses.count, UNENDED)),
        completed=statuses.count(Status.COMPLETED),
        wall_seconds=_sum(wall),
        cpu_seconds=_sum(cpu),
        byte_seconds=_sum(held),
        requested_cpu_seconds=_sum([seconds for seconds, _ in requested]),
        used_of_requested=_sum([used for _, used in requested]),
        energy_joules=_sum(columns["energy_joules"]),
        gpu_seconds=_sum(columns["gpu_seconds"]),
    )


def together(parts: Sequence[GroupTotals]) -> GroupTotals:
    """The totals over all groups."""
    columns = list(zip(*parts)) or [()] * len(GroupTotals._fields)
    counts = [sum(column) for column in columns[:3]]
    return GroupTotals(counts[0], counts[1], counts[2], *(_sum(column) for column in columns[3:]))


def _sum(values: Sequence[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) if measured else None


def group(figures: Iterable[RunFigures]) -> list[GroupStatistics]:
    """The statistics of each group and source, those with most runs first."""
    groups: dict[tuple[str | None, str], list[RunFigures]] = {}
    for run in figures:
        key = (run[0], run[1])
        members = groups.get(key)
        if members is None:
            members = groups[key] = []
        members.append(run)
    statistics = []
    for (name, source), members in groups.items():
        columns = dict(zip(FIGURES, list(zip(*members))[2:]))
        spreads = {figure: spread([v for v in columns[figure] if v is not None]) for figure in SPREAD}
        measured = {figure: levels for figure, levels in spreads.items() if levels}
        statistics.append(GroupStatistics(name, source, total(columns), measured))
    return most_first(statistics)


def most_first(groups: Iterable[GroupStatistics]) -> list[GroupStatistics]:
    return sorted(groups, key=lambda group: (-group.totals.runs, group.group or "", group.source))


def rates(totals: GroupTotals, factors: Factors = NO_FACTORS) -> dict[str, float]:
    """Counts, success rate, hours, energy, efficiency and costs, derived from the sums; absent if not measured."""
    values: dict[str, float] = {"runs": totals.runs}
    if totals.ended:
        values["success_rate"] = totals.completed / totals.ended
    if totals.wall_seconds is not None:
        values["wall_hours"] = totals.wall_seconds / _HOUR
    if totals.cpu_seconds is not None:
        values["core_hours"] = totals.cpu_seconds / _HOUR
    if totals.byte_seconds is not None:
        values["gb_hours"] = totals.byte_seconds / _GIB / _HOUR
    if totals.requested_cpu_seconds and totals.used_of_requested is not None:
        values["core_hours_asked"] = totals.requested_cpu_seconds / _HOUR
        values["cpu_efficiency"] = totals.used_of_requested / totals.requested_cpu_seconds
    if totals.gpu_seconds is not None:
        values["gpu_hours"] = totals.gpu_seconds / _HOUR
    if totals.energy_joules is not None:
        values["energy_kwh"] = totals.energy_joules / JOULES_PER_KWH
    return values | costs(values, factors)


def rounded_rates(totals: GroupTotals, factors: Factors = NO_FACTORS) -> dict[str, float]:
    """The rates, rounded as they are printed for programs."""
    values = rates(totals, factors)
    return {name: value if isinstance(value, int) else round(value, 6) for name, value in values.items()}
