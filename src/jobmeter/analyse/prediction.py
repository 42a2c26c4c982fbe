"""What the next run will need, from what earlier ones needed.

Needs are positive and differ by factors, so all is reckoned on their logarithms. Recent runs count more.
A run that did not come to its end tells a lower bound of what it needed, not the need.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, exp, log, pi, sqrt
from typing import NamedTuple

from jobmeter.analyse.student import cdf, quantile

HALF_LIFE = 30.0
"""Runs after which a run counts half: about the last hundred decide."""
_ROUNDS = 200
_SETTLED = 1e-9
_FAR = 30.0


class Need(NamedTuple):
    """What one run was seen to need."""

    value: float  # above 0
    complete: bool = True  # False: it needed at least that


class Prediction(NamedTuple):
    """How the logarithms of needs lie: as of a normal distribution of which mean and deviation are estimated."""

    mean: float
    deviation: float
    runs: float  # how many runs that count alike would tell as much

    @property
    def usual(self) -> float:
        """What half of the next runs stay below."""
        return exp(self.mean)

    @property
    def factor(self) -> float:
        """The usual way from one run to another, as a factor."""
        return exp(self.deviation)

    def bound(self, level: float) -> float:
        """What the next run stays below with this chance (one-sided prediction bound)."""
        # Of very few runs the factor can be beyond all numbers.
        return exp(min(self.mean + quantile(level, self.runs - 1) * self._error, 700.0))

    def exceeding(self, value: float) -> float:
        """The chance that the next run needs more than `value`."""
        return 1 - cdf((log(value) - self.mean) / self._error, self.runs - 1)

    @property
    def _error(self) -> float:
        return self.deviation * sqrt(1 + 1 / self.runs)


def recency(count: int) -> list[float]:
    """The weights of so many runs, newest first."""
    return [0.5 ** (place / HALF_LIFE) for place in range(count)]


def predict(needs: Sequence[Need], least_deviation: float) -> Prediction | None:
    """The prediction from needs, newest first; None when fewer than two of them are complete.

    `least_deviation`, of the logarithm, is taken where runs differ by less: the next may be on another machine.
    """
    weights = recency(len(needs))
    known = [(weight, log(need.value)) for weight, need in zip(weights, needs) if need.complete]
    if len(known) < 2:
        return None
    total = sum(weight for weight, _ in known)
    squares = sum(weight * weight for weight, _ in known)
    runs = total * total / squares
    mean = sum(weight * value for weight, value in known) / total
    variance = sum(weight * (value - mean) ** 2 for weight, value in known) / total
    bounds = [(weight, log(need.value)) for weight, need in zip(weights, needs) if not need.complete]
    least = least_deviation**2
    if bounds:
        mean, variance = _with_bounds(known, bounds, mean, max(variance, least))
    return Prediction(mean, sqrt(max(variance * runs / (runs - 1), least)), runs)


Weighted = Sequence[tuple[float, float]]


def _with_bounds(known: Weighted, bounds: Weighted, mean: float, variance: float) -> tuple[float, float]:
    """Mean and variance when of some only a lower bound is known (expectation maximisation)."""
    total = sum(weight for weight, _ in (*known, *bounds))
    for _ in range(_ROUNDS):
        deviation = sqrt(variance)
        expected = [(weight, *_above(value, mean, deviation)) for weight, value in bounds]
        before = mean
        mean = (sum(w * v for w, v in known) + sum(w * v for w, v, _ in expected)) / total
        variance = (
            sum(w * (v - mean) ** 2 for w, v in known) + sum(w * ((v - mean) ** 2 + more) for w, v, more in expected)
        ) / total
        if abs(mean - before) < _SETTLED:
            break
    return mean, variance


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
