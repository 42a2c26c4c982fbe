"""The runs of a benchmark: the order to run them in, and the statistics of each variant. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from jobmeter.analyse.compare import MEASURES, ComparedFigure
from jobmeter.analyse.permutation import CONFIDENCE
from jobmeter.analyse.statistics import quantile
from jobmeter.model import Quality

_SHOWN = ("wall_seconds", "cpu_seconds", "memory_peak_bytes", "read_bytes", "write_bytes")
BENCH_MEASURES: tuple[ComparedFigure, ...] = tuple(measure for measure in MEASURES if measure.key in _SHOWN)
"""The measures reported of each variant."""

_FAR = 5.0
"""An outlier is more than this many robust standard deviations from the median."""
_WORTH_REPORTING = 0.1
"""An outlier also differs from the median by more than this share: a page of memory more or less does not matter."""
_ROBUST = 1.4826  # standard deviation / median absolute deviation, of normally distributed values


class BenchFigure(NamedTuple):
    """A headline figure of one run."""

    value: float
    source: str  # the key of the measurement; `clock` for wall time
    at_least: bool = False
    sources: Mapping[str, float] = {}  # key of each measurement that has the figure → its value, the best first


class BenchRun(NamedTuple):
    """One run of one variant."""

    id: str
    status: str
    exit_code: int | None
    figures: Mapping[str, BenchFigure]  # by the key of the measure; absent: not measured

    def as_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"id": self.id, "status": self.status}
        if self.exit_code is not None:
            entry["exit_code"] = self.exit_code
        for key, figure in self.figures.items():
            entry[key] = {"value": figure.value, "from": figure.source, "sources": dict(figure.sources)}
            if figure.at_least:
                entry[key]["quality"] = Quality.AT_LEAST.value
        return entry


def run_from_json(entry: Mapping[str, Any]) -> BenchRun:
    """Rebuild a run from what `as_json` returned.

    Raises KeyError, TypeError, ValueError or AttributeError if the entry does not have that form.
    """
    figures = {
        measure.key: BenchFigure(
            float(entry[measure.key]["value"]),
            str(entry[measure.key]["from"]),
            entry[measure.key].get("quality") == Quality.AT_LEAST,
            {str(key): float(value) for key, value in entry[measure.key].get("sources", {}).items()},
        )
        for measure in BENCH_MEASURES
        if measure.key in entry
    }
    return BenchRun(str(entry["id"]), str(entry["status"]), entry.get("exit_code"), figures)


class Spread(NamedTuple):
    """The statistics of one figure over all runs of a variant."""

    runs: int
    median: float
    low_quartile: float
    high_quartile: float
    interval: tuple[float, float] | None  # of the median; None: too few runs for one
    mean: float
    deviation: float | None  # standard deviation; None: one run
    least: float
    most: float
    at_least: bool  # some of its values may be higher

    @property
    def width(self) -> float:
        """The interquartile range: how far apart the middle half of the runs is."""
        return self.high_quartile - self.low_quartile

    def as_json(self) -> dict[str, Any]:
        entry = {**self._asdict(), "interval": None if self.interval is None else list(self.interval)}
        return {name: value for name, value in entry.items() if value is not None}


def interleaved(variants: int, rounds: int) -> list[int]:
    """The order of all runs, as indexes of variants: every variant once in each round.

    Slow changes of the machine then affect all variants alike. Each round begins with another variant. When every
    variant has been first, the direction is reversed, so that no variant always follows the same one.
    """
    order: list[int] = []
    for number in range(rounds):
        turn, first = divmod(number, variants)
        step = -1 if turn % 2 else 1
        order += [(first + step * place) % variants for place in range(variants)]
    return order


def spread_of(runs: Sequence[BenchRun], key: str) -> Spread | None:
    """The statistics of one figure; None when no run has it."""
    figures = [run.figures[key] for run in runs if key in run.figures]
    if not figures:
        return None
    ordered = sorted(figure.value for figure in figures)
    return Spread(
        runs=len(ordered),
        median=median(ordered),
        low_quartile=quantile(ordered, 0.25),
        high_quartile=quantile(ordered, 0.75),
        interval=median_interval(ordered),
        mean=fmean(ordered),
        deviation=stdev(ordered) if len(ordered) > 1 else None,
        least=ordered[0],
        most=ordered[-1],
        at_least=any(figure.at_least for figure in figures),
    )


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % confidence interval of the median, as two of the sorted values; None if there are fewer than 6.

    The confidence is 95 % or more for any distribution: each value is above the median with a probability of 1/2.
    """
    count = len(ordered)
    below = 0.0
    rank = 0
    while (below := below + math.comb(count, rank) / 2**count) <= (1 - CONFIDENCE) / 2:
        rank += 1
    return (ordered[rank - 1], ordered[count - rank]) if rank else None


def outliers(values: Sequence[float]) -> list[int]:
    """The indexes of values that are far from the others; none if there are fewer than 3 values."""
    if len(values) < 3:
        return []
    middle = median(values)
    scale = _ROBUST * median([abs(value - middle) for value in values])
    return [
        place
        for place, value in enumerate(values)
        if abs(value - middle) > _FAR * scale and abs(value - middle) > _WORTH_REPORTING * abs(middle)
    ]


def speed_up(reference: Spread, variant: Spread) -> float | None:
    """How many times as fast as the reference a variant is, by median wall time; None if its median is 0."""
    return reference.median / variant.median if variant.median > 0 else None


class Scaling(NamedTuple):
    """A variant compared with its reference, which `scalings` chooses."""

    speed_up: float
    efficiency: float | None  # parallel efficiency; None: no parameter counts workers


def scalings(
    variants: Sequence[Mapping[str, str]], walls: Sequence[Spread | None], workers: str | None
) -> list[Scaling | None]:
    """Speed-up and parallel efficiency of each variant, given its parameters and its wall time.

    `workers` names the parameter that counts workers. Of the variants that differ only in this parameter, the one with
    the fewest workers is the reference; without such a parameter, the first variant is. Only variants with a wall time
    are references. None for a variant whose speed-up is not known.
    """
    references: dict[tuple[tuple[str, str], ...], int] = {}
    for place, parameters in enumerate(variants):
        if walls[place] is None:
            continue
        others = _others(parameters, workers)
        best = references.get(others)
        if best is None or (workers is not None and float(parameters[workers]) < float(variants[best][workers])):
            references[others] = place
    scalings: list[Scaling | None] = []
    for parameters, wall in zip(variants, walls):
        place = references.get(_others(parameters, workers), -1)
        reference = walls[place] if place >= 0 else None
        ratio = None if wall is None or reference is None else speed_up(reference, wall)
        if ratio is None:
            scalings.append(None)
        elif workers is None:
            scalings.append(Scaling(ratio, None))
        else:
            scalings.append(Scaling(ratio, ratio * float(variants[place][workers]) / float(parameters[workers])))
    return scalings


def _others(parameters: Mapping[str, str], workers: str | None) -> tuple[tuple[str, str], ...]:
    if workers is None:
        return ()
    return tuple((name, value) for name, value in parameters.items() if name != workers)


def counts_workers(values: Sequence[str]) -> bool:
    """Whether the values of a parameter can be numbers of workers: whole numbers above 0, more than one of them."""
    return len(set(values)) > 1 and all(value.isascii() and value.isdecimal() and int(value) > 0 for value in values)
