"""What the next run will need, from what earlier ones needed.

Needs are positive and differ by factors, so everything is computed on their logarithms. Recent runs count more.
A run that did not complete gives a lower bound of what it needed, not the need.

The jobs of a sweep differ by their parameters: each has a level of its own, and chance is only what the runs
of the same job differ by. What is predicted is the next run of the largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erfc, exp, log, pi, sqrt
from statistics import NormalDist
from typing import NamedTuple

from jobmeter.analyse.student import cdf, quantile

HALF_LIFE = 30.0
"""Runs of a job after which a run counts half: about the last hundred decide."""
_ROUNDS = 200
_SETTLED = 1e-9
_FAR = 30.0
_NORMAL = NormalDist()


class Need(NamedTuple):
    """What one run needed, as far as it was observed."""

    value: float  # above 0
    complete: bool = True  # False: it needed at least that
    name: str = ""  # of the job, where there are several


class Prediction(NamedTuple):
    """How the logarithms of needs lie: as of a normal distribution of which mean and deviation are estimated."""

    mean: float
    deviation: float
    runs: float  # the effective number of runs for the mean, of equal weight
    freedom: float  # degrees of freedom, of the deviation
    least: float  # the deviation that is assumed where runs differ by less
    name: str = ""  # the job whose next run is predicted

    @property
    def usual(self) -> float:
        """What half of the next runs stay below."""
        return exp(self.mean)

    def bound(self, level: float) -> float:
        """What the next run stays below with this chance (one-sided prediction bound)."""
        # What is assumed is not estimated, so that few runs make it no less sure.
        far = max(quantile(level, self.freedom) * self.deviation, _NORMAL.inv_cdf(level) * self.least)
        # Of very few runs the factor can be beyond all numbers.
        return exp(min(self.mean + far * self._more, 700.0))

    def exceeding(self, value: float) -> float:
        """The chance that the next run needs more than `value`."""
        far = (log(value) - self.mean) / self._more
        assumed = 1 - _NORMAL.cdf(far / self.least)
        if not self.deviation:
            return assumed
        wider = max if far > 0 else min
        return wider(1 - cdf(far / self.deviation, self.freedom), assumed)

    @property
    def _more(self) -> float:
        """The mean is not sure either."""
        return sqrt(1 + 1 / self.runs)


def recency(count: int) -> list[float]:
    """The weights of so many runs, newest first."""
    return [0.5 ** (place / HALF_LIFE) for place in range(count)]


Weighted = Sequence[tuple[float, float]]
"""Weights and logarithms."""


def predict(needs: Sequence[Need], least_deviation: float) -> Prediction | None:
    """The prediction from needs, newest first; None when no job has two that are complete.

    The deviation is that within jobs, of all of them together. `least_deviation`, of the logarithm, is assumed where
    runs differ by less: the next may be on another machine.
    """
    complete_by_name, bounds = _by_name(needs, complete=True), _by_name(needs, complete=False)
    if all(len(runs) < 2 for runs in complete_by_name.values()):
        return None
    means = {name: _mean(runs) for name, runs in complete_by_name.items()}
    total = sum(weight for runs in complete_by_name.values() for weight, _ in runs)
    squares = sum(
        weight * (value - means[name]) ** 2 for name, runs in complete_by_name.items() for weight, value in runs
    )
    variance = squares / total
    if any(name in complete_by_name for name in bounds):
        means, variance = _with_bounds(complete_by_name, bounds, means, max(variance, least_deviation**2))
    free = sum(_total(runs) * (1 - 1 / effective(runs)) for runs in complete_by_name.values())
    freedom = sum(effective(runs) - 1 for runs in complete_by_name.values())
    largest = max(means, key=means.__getitem__)
    deviation = sqrt(variance * total / free)
    return Prediction(
        means[largest], deviation, effective(complete_by_name[largest]), freedom, least_deviation, largest
    )


def predict_across(needs: Sequence[Need], least_deviation: float) -> Prediction | None:
    """The same where the runs of one job are taken to differ as much as those of all; None when one alone is complete.

    They differ by less: it is what can be said of jobs that ran once, or hardly more.
    """
    complete_by_name = _by_name(needs, complete=True)
    every = [run for runs in complete_by_name.values() for run in runs]
    if len(every) < 2:
        return None
    middle, runs = _mean(every), effective(every)
    variance = sum(weight * (value - middle) ** 2 for weight, value in every) / _total(every) * runs / (runs - 1)
    means = {name: _mean(job_runs) for name, job_runs in complete_by_name.items()}
    largest = max(means, key=means.__getitem__)
    return Prediction(
        means[largest], sqrt(variance), effective(complete_by_name[largest]), runs - 1, least_deviation, largest
    )


def _by_name(needs: Sequence[Need], *, complete: bool) -> dict[str, list[tuple[float, float]]]:
    """The weights and logarithms of the needs that are complete, or of those that are not; by later runs of the job."""
    weights = recency(len(needs))
    later: dict[str, int] = {}
    by_name: dict[str, list[tuple[float, float]]] = {}
    for need in needs:
        place = later[need.name] = later.get(need.name, -1) + 1
        if need.complete is complete:
            by_name.setdefault(need.name, []).append((weights[place], log(need.value)))
    return by_name


def _total(runs: Weighted) -> float:
    return sum(weight for weight, _ in runs)


def _mean(runs: Weighted) -> float:
    return sum(weight * value for weight, value in runs) / _total(runs)


def effective(runs: Weighted) -> float:
    """The effective number of runs: how many of equal weight would be as informative."""
    return _total(runs) ** 2 / sum(weight * weight for weight, _ in runs)


def _with_bounds(
    complete_by_name: Mapping[str, Weighted],
    bounds: Mapping[str, Weighted],
    means: Mapping[str, float],
    variance: float,
) -> tuple[dict[str, float], float]:
    """Means and variance when of some only a lower bound is known (expectation maximisation).

    A job of which no run is complete has no level, and its bounds are not used here.
    """
    means = dict(means)
    total = sum(_total(runs) + _total(bounds.get(name, ())) for name, runs in complete_by_name.items())
    for _ in range(_ROUNDS):
        deviation, squares, moved = sqrt(variance), 0.0, 0.0
        for name, runs in complete_by_name.items():
            expected = [(weight, *_above(value, means[name], deviation)) for weight, value in bounds.get(name, ())]
            both = [*runs, *((weight, value) for weight, value, _ in expected)]
            mean = _mean(both)
            moved = max(moved, abs(mean - means[name]))
            means[name] = mean
            squares += sum(weight * (value - mean) ** 2 for weight, value in both)
            squares += sum(weight * more for weight, _, more in expected)
        variance = squares / total
        if moved < _SETTLED:
            break
    return means, variance


def _above(least: float, mean: float, deviation: float) -> tuple[float, float]:
    """Mean and variance of a normal value of which it is known that it is above `least`."""
    far = (least - mean) / deviation
    if far > _FAR:
        return least + deviation / far, (deviation / far) ** 2
    hazard = exp(-far * far / 2) / sqrt(2 * pi) / (erfc(far / sqrt(2)) / 2)
    return mean + deviation * hazard, max(deviation**2 * (1 + far * hazard - hazard**2), 0.0)


def weighted_quantile(values: Sequence[float], level: float) -> float:
    """The smallest value, of these newest first, that a share `level` does not exceed; recent ones count more."""
    ordered = sorted(zip(values, recency(len(values))))
    beyond = (1 - level) * sum(weight for _, weight in ordered)
    for value, weight in reversed(ordered):
        beyond -= weight
        if beyond < 0:
            return value
    return ordered[0][0]
