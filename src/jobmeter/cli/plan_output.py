"""The output of `jobmeter plan`: figures with their ranges, steps, and what they mean."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.report.table_layout import Column
from jobmeter.units import share_text, text, without_unit
from jobmeter.workflow.budget import FIGURES, SURE, UsageForecast
from jobmeter.workflow.expected_usage import Expected
from jobmeter.workflow.plan import Job
from jobmeter.workflow.requirement_text import duration_in_words
from jobmeter.workflow.simulation import Cluster

_MOST_NAMES = 5
_LEAST_HOURS = 0.001
_MOST_LEVELS = 500
"""The most points in the JSON of what is occupied over time."""
STEP_COLUMNS = (
    Column("step", essential=True, shortens=True),
    Column("jobs", "count"),
    Column("runs", "count"),
    Column("wall_time", "seconds", essential=True),
    Column("cpu_time", "seconds"),
    Column("memory_peak", "bytes"),
    Column("known_from", shortens=True),
)


class Planned(NamedTuple):
    """A plan and its forecast."""

    name: str
    jobs: Sequence[Job]
    expected: Mapping[int, Expected]
    runs: Mapping[str, int]  # step → the number of its stored runs
    forecast: UsageForecast
    chain: list[int]  # the jobs of the longest chain
    chain_seconds: float
    bounds: Mapping[str, float]  # the budget
    deadline: float | None = None  # seconds from now
    smallest: UsageForecast | None = None  # with a deadline: on the fewest nodes that meet it

    @property
    def fits(self) -> bool:
        """Whether each bound of the budget, and the deadline, is kept in at least the share `SURE` of simulations."""
        within = [self.forecast.share_within(name, bound) for name, bound in self._all_bounds()]
        return all(share >= SURE for share in within)

    def _all_bounds(self) -> list[tuple[str, float]]:
        deadline = [] if self.deadline is None else [("wall_seconds", self.deadline)]
        return [*self.bounds.items(), *deadline]


def heading(planned: Planned) -> str:
    """The first line: what is planned, where it would run, and how many stored runs the forecast is based on."""
    count, runs = len(planned.jobs), sum(planned.runs.values())
    return (
        f"{planned.name}: {count:,} job{'s' * (count != 1)} on {_cluster_text(planned.forecast.cluster)}, "
        f"known from {runs:,} stored run{'s' * (runs != 1)}"
    )


def figure_columns(planned: Planned) -> list[Column]:
    columns = [Column("figure", essential=True), *(Column(name, "count") for name in ("expected", "low", "high"))]
    return [*columns, Column("budget", "count"), Column("within", "count")] if planned.bounds else columns


def figure_rows(planned: Planned) -> list[list[str]]:
    """Each figure with the range that nine of ten simulations are in, and the share of them that fits the budget."""
    rows = []
    for name, each in planned.forecast.ranges.items():
        unit = FIGURES[name].unit
        cells = [without_unit(name), *(_amount(value, unit) for value in each)]
        if planned.bounds:
            bound = planned.bounds.get(name)
            share = None if bound is None else planned.forecast.share_within(name, bound)
            cells += ["" if bound is None else _amount(bound, unit), "" if share is None else share_text(share)]
        rows.append(cells)
    return rows


def step_rows(planned: Planned) -> list[list[str]]:
    """Each step with the medians that are expected of one of its jobs."""
    return [
        [
            step,
            f"{entry['jobs']:,}",
            f"{entry['runs']:,}",
            text(entry["wall_seconds"], "seconds"),
            text(entry["cpu_seconds"], "seconds") if "cpu_seconds" in entry else "",
            text(entry["memory_peak_bytes"], "bytes") if "memory_peak_bytes" in entry else "",
            entry.get("assumed", "history"),
        ]
        for step, entry in _steps(planned).items()
    ]


def sentences(planned: Planned) -> list[str]:
    """Notes on the figures: the longest chain, assumptions, the budget and the deadline."""
    lines = [_chain_text(planned)]
    assumed: dict[str, list[str]] = {}
    for job in planned.jobs:
        if (assumption := planned.expected[job.number].assumption) is not None:
            assumed.setdefault(assumption, []).append(job.name)
    for assumption, names in assumed.items():
        lines.append(f"No run of {_named(names)} has completed: {assumption} is assumed.")
    for name, bound in planned.bounds.items():
        share = planned.forecast.share_within(name, bound)
        if share < SURE:
            most = _amount(bound, FIGURES[name].unit)
            lines.append(f"Over budget: {without_unit(name)} is within {most} in {share_text(share)} of simulations.")
    if planned.deadline is not None:
        lines.append(_deadline_text(planned, planned.deadline))
    return lines


def plan_object(planned: Planned) -> dict[str, Any]:
    """The plan and its forecast as JSON."""
    forecast = planned.forecast
    entry: dict[str, Any] = {
        "name": planned.name,
        "jobs": len(planned.jobs),
        "runs": sum(planned.runs.values()),
        "cluster": _cluster_object(forecast.cluster),
        "simulations": len(forecast.simulations),
        "fits": planned.fits,
        "figures": _figures_object(planned, forecast),
        "steps": [{"step": step, **fields} for step, fields in _steps(planned).items()],
        "longest_chain": {"jobs": planned.chain, "wall_seconds": round(planned.chain_seconds, 3)},
        "over_time": _over_time(forecast),
    }
    if planned.deadline is not None:
        entry["deadline_seconds"] = round(planned.deadline, 3)
        if planned.smallest is not None:
            entry["smallest_cluster"] = {
                **_cluster_object(planned.smallest.cluster),
                "figures": _figures_object(planned, planned.smallest),
            }
    return entry


def _figures_object(planned: Planned, forecast: UsageForecast) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, each in forecast.ranges.items():
        figures[name] = {key: round(value, 6) for key, value in each._asdict().items()}
        if name in planned.bounds:
            share = forecast.share_within(name, planned.bounds[name])
            figures[name] |= {"budget": planned.bounds[name], "share_within": round(share, 4)}
    return figures


def _over_time(forecast: UsageForecast) -> list[dict[str, float]]:
    """What is occupied over time in the simulation of median length, at `_MOST_LEVELS` evenly chosen points at most."""
    levels = forecast.typical().levels
    step = -(-len(levels) // _MOST_LEVELS)
    return [
        {
            "seconds": round(level.seconds, 3),
            "jobs": level.jobs,
            "cpus": round(level.cpus, 3),
            "memory_bytes": round(level.memory_bytes),
        }
        for level in levels[::step]
    ]


def _steps(planned: Planned) -> dict[str, dict[str, Any]]:
    """For each step, what is expected of one of its jobs; what is unknown is absent."""
    by_step: dict[str, list[Expected]] = {}
    for job in planned.jobs:
        by_step.setdefault(job.step, []).append(planned.expected[job.number])
    steps = {}
    for step, jobs in by_step.items():
        uses = [use for expected in jobs for use in expected.completed]
        entry: dict[str, Any] = {"jobs": len(jobs), "runs": planned.runs.get(step, 0)}
        for name, values in (
            ("wall_seconds", [use.seconds for use in uses]),
            ("cpu_seconds", [use.cpu_seconds for use in uses if use.cpu_seconds is not None]),
            ("memory_peak_bytes", [use.memory_peak_bytes for use in uses if use.memory_peak_bytes is not None]),
        ):
            if values:
                entry[name] = round(statistics.median(values), 6)
        if jobs[0].assumption is not None:
            entry["assumed"] = jobs[0].assumption
        steps[step] = entry
    return steps


def _chain_text(planned: Planned) -> str:
    names = {job.number: job.name for job in planned.jobs}
    chain = [names[number] for number in planned.chain]
    if len(chain) > _MOST_NAMES:
        chain = [*chain[:2], f"… {len(chain) - 4:,} more …", *chain[-2:]]
    return f"Longest chain: {' → '.join(chain)}, {text(planned.chain_seconds, 'seconds')}."


def _deadline_text(planned: Planned, deadline: float) -> str:
    within = duration_in_words(deadline)
    if planned.smallest is None:
        return f"No number of such nodes is done within {within}: see the longest chain, or take faster nodes."
    nodes, now = planned.smallest.cluster.nodes, planned.forecast.cluster.nodes
    enough = f"{nodes:,} such node{'s' * (nodes != 1)}"
    share = planned.forecast.share_within("wall_seconds", deadline)
    verdict = f"{now:,} node{'s' * (now != 1)} in {share_text(share)} of simulations"
    return f"Done within {within}: {verdict}. The fewest that are, in 95 % of them: {enough}."


def _cluster_object(cluster: Cluster) -> dict[str, Any]:
    return {"nodes": cluster.nodes, "node": cluster.node.known()}


def _cluster_text(cluster: Cluster) -> str:
    node = cluster.node
    amounts = [
        "" if node.cpus is None else f"{node.cpus:g} cpu{'s' * (node.cpus != 1)}",
        "" if node.memory_bytes is None else text(node.memory_bytes, "bytes"),
        f"{node.gpus} gpu{'s' * (node.gpus != 1)}" if node.gpus else "",
    ]
    there_are = ", ".join(filter(None, amounts))
    return f"{cluster.nodes:,} node{'s' * (cluster.nodes != 1)}" + (f" of {there_are}" if there_are else "")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def _amount(value: float, unit: str) -> str:
    if unit != "hours":
        return text(value, unit)
    if 0 < value < _LEAST_HOURS:
        return f"< {_LEAST_HOURS}"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
