"""What a workflow will cost, whether that fits a budget, and the smallest cluster that meets a deadline. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from jobmeter.analyse.statistics import quantile
from jobmeter.workflow.expected_usage import Expected, Use
from jobmeter.workflow.graph import critical_path
from jobmeter.workflow.plan import Job
from jobmeter.workflow.simulation import Cluster, Simulated, simulate

SURE = 0.95
"""The share of the simulations that must keep to a bound."""
_MOST, _FEWEST, _JOBS = 200, 20, 100_000
"""The number of simulations is `_JOBS` divided by the number of jobs, but at most `_MOST` and at least `_FEWEST`."""


class Range(NamedTuple):
    """A figure over all simulations."""

    expected: float  # the median
    low: float  # 5 % of the simulations are below
    high: float  # 5 % are above


class UsageForecast(NamedTuple):
    """What a plan is expected to use on a cluster."""

    cluster: Cluster
    ranges: dict[str, Range]  # by the names of `FIGURES`; absent if not known for some job
    simulations: list[Simulated]

    def typical(self) -> Simulated:
        """The simulation whose length is the median."""
        return sorted(self.simulations, key=lambda each: each.seconds)[len(self.simulations) // 2]

    def share_within(self, figure: str, bound: float) -> float:
        """The share of the simulations in which a figure is at most `bound`."""
        values = [FIGURES[figure].of(each) for each in self.simulations]
        return sum(value is not None and value <= bound for value in values) / len(values)


class _Figure(NamedTuple):
    unit: str
    of: Callable[[Simulated], float | None]


FIGURES = {
    "wall_seconds": _Figure("seconds", lambda each: each.seconds),
    "core_hours": _Figure("hours", lambda each: each.core_hours),
    "core_hours_used": _Figure("hours", lambda each: each.used_core_hours),
    "gb_hours": _Figure("hours", lambda each: each.gb_hours),
    "gb_hours_used": _Figure("hours", lambda each: each.used_gb_hours),
    "memory_peak_bytes": _Figure("bytes", lambda each: each.memory_peak_bytes),
    "jobs_at_once": _Figure("count", lambda each: float(each.jobs_peak)),
}
"""What is forecast. `core_hours` and `gb_hours` are what jobs reserve: their requests, for as long as they run."""


def forecast_usage(jobs: Sequence[Job], cluster: Cluster, expected: Mapping[int, Expected]) -> UsageForecast:
    """Simulate the plan many times. Each job must fit a node and be in `expected`. Equal input, equal result."""
    chance = Random(1)
    count = max(_FEWEST, min(_MOST, _JOBS // max(len(jobs), 1)))
    simulations = [simulate(jobs, cluster, _draw(jobs, expected, chance)) for _ in range(count)]
    ranges = {}
    for name, figure in FIGURES.items():
        values = [figure.of(each) for each in simulations]
        measured = sorted(value for value in values if value is not None)
        if len(measured) == len(values):
            ranges[name] = Range(statistics.median(measured), quantile(measured, 0.05), quantile(measured, 0.95))
    return UsageForecast(cluster, ranges, simulations)


def _draw(jobs: Sequence[Job], expected: Mapping[int, Expected], chance: Random) -> dict[int, list[Use]]:
    return {job.number: expected[job.number].draw(chance, job.retry.times) for job in jobs}


def longest_chain(jobs: Sequence[Job], expected: Mapping[int, Expected]) -> tuple[list[int], float]:
    """The critical path, which no cluster can make shorter: its jobs, and how many seconds it is expected to take."""
    seconds = {number: statistics.median(use.seconds for use in each.completed) for number, each in expected.items()}
    path = critical_path(jobs, seconds)
    return path, sum(seconds[number] for number in path)


def smallest_cluster(
    jobs: Sequence[Job], cluster: Cluster, expected: Mapping[int, Expected], deadline: float
) -> UsageForecast | None:
    """The forecast for the fewest nodes of this kind that meet the deadline, in seconds; None if no number does."""
    most = len(jobs)  # with a node for each job, no job waits for a node
    widest = forecast_usage(jobs, cluster._replace(nodes=most), expected)
    if widest.share_within("wall_seconds", deadline) < SURE:
        return None
    too_few, enough, best = 0, max(int(each.jobs_peak) for each in widest.simulations), widest
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        tried = forecast_usage(jobs, cluster._replace(nodes=middle), expected)
        if tried.share_within("wall_seconds", deadline) >= SURE:
            enough, best = middle, tried
        else:
            too_few = middle
    return best if best.cluster.nodes == enough else forecast_usage(jobs, cluster._replace(nodes=enough), expected)
