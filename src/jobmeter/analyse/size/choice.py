"""Choose the margin of least cost: the factor on a prediction, by how far past needs were from their predictions.

The sample is the residuals of a model: need over prediction. Each residual is widened to a few points of a Student
distribution, because the next run is never quite like a past one. A few more runs are assumed, which vary as a normal
distribution of this spread would: the spread of a small sample says more than its largest value about what may lie
above the sample. The chosen margin is the one that would have cost least. The cost is what is requested and not used,
what a failed attempt and its retry hold, and a price for each failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, log, sqrt
from statistics import NormalDist
from typing import NamedTuple

from jobmeter.analyse.size.models import middle

WIDTH = 5.2
"""Factor on the spread of the residuals, to which each residual is widened; it falls with the number of runs."""
DECAY = 0.6
"""The factor falls as this power of the number of runs."""
WIDEST, NARROWEST = 1.6, 0.001
"""The upper bound of that factor, and the lower bound of the width itself."""
HEAVY_TAIL = 3
"""Degrees of freedom of the Student distribution that each residual is widened to."""
FINE, TAIL = 24, 4
"""The least number of points for a large residual, and how many of the largest these are: they decide how rare a
failure is."""
ASSUMED_RUNS = 10.0
"""Runs that are assumed in addition to those of the past."""
_ASSUMED_POINTS = 48
_MOST_FREEDOM = 60
"""Degrees of freedom from which on a sample hardly differs from a normal distribution."""
_OF_NORMAL = 1.19
"""The standard deviation of a normal distribution whose `upper_spread` is 1."""
OPTIMISM, MOST_OPTIMISM = 12.0, 1.0
"""More runs will fail than the runs suggest that the margin was chosen by: by the share `OPTIMISM` over the number of
runs, at most `MOST_OPTIMISM`."""
SPREAD_RUNS = 1.0
"""The spread of the other jobs of the workflow counts as this many runs of the job."""
FEW = 4
"""With fewer runs than this, a spread may be small by luck, and counts as at least that of other jobs."""
_POINTS, _LEAST_POINTS, _MOST_POINTS = 64, 2, 8
_RETRY = 1.1
"""The least factor by which a retry is larger than the failed request."""
_WORTH = 0.4
"""No margin with a larger share of failures is of least cost; so smaller residuals are left out."""


class Residual(NamedTuple):
    """The error of a model for one run that it had not learned."""

    distance: float  # the logarithm of need over prediction
    held: float  # the prediction, times the seconds it is held for
    used: float  # the need, times these seconds


class Margin(NamedTuple):
    """A margin: `distance` is what to add to the logarithm of a prediction."""

    cost: float  # of the past runs, as a multiple of what they used
    distance: float
    spread: float
    failing: float  # the share of runs that is expected to fail


class Price(NamedTuple):
    """What the choice depends on, in addition to the residuals."""

    failure: float  # the cost of one failure, in the unit of what is held
    usual_spread: float  # of the jobs of the workflow


_Point = tuple[float, float, float]
"""A part of a possible future run: its distance, what is held for it, its mass."""


def choose_margin(residuals: Sequence[Residual], price: Price) -> Margin:
    """The margin of least cost. There must be at least one residual."""
    count = len(residuals)
    ordered = sorted(residuals, reverse=True)
    spread = pooled(upper_spread([one.distance for one in ordered]), count, price.usual_spread)
    held, used = sum(one.held for one in ordered), sum(one.used for one in ordered)
    cost, distance, failing = _least_cost(_points(ordered, spread), held, ordered[0].distance, price)
    return Margin(cost / used, distance, spread, _expected(failing, count))


def failing_above(residuals: Sequence[Residual], spread: float, distance: float) -> float:
    """The share of runs expected to fail with the margin `distance`, below the chosen one, which has this spread."""
    points = _points(sorted(residuals, reverse=True), spread)
    return _expected(sum(mass for above, _, mass in points if above > distance), len(residuals))


def _expected(failing: float, count: int) -> float:
    """The expected share of failures of future runs, if `failing` of `count` past runs fail."""
    return min(failing / count * (1 + min(OPTIMISM / count, MOST_OPTIMISM)), 1.0)


def choose_retry(residuals: Sequence[Residual], price: Price, spread: float, above: float) -> float | None:
    """The margin of least cost for a run that needed more than the margin `above`; None if no such run is expected."""
    ordered = sorted(residuals, reverse=True)
    points = [point for point in _points(ordered, spread) if point[0] > above]
    if not points:
        return None
    return _least_cost(points, sum(held for _, held, _ in points), ordered[0].distance, price)[1]


def _points(ordered: Sequence[Residual], spread: float) -> list[_Point]:
    """The possible future runs as points, the largest first, without those that are too small to matter."""
    count = len(ordered)
    width = max(NARROWEST, spread * min(WIDEST, WIDTH * count**-DECAY))
    split = max(_LEAST_POINTS, min(_MOST_POINTS, _POINTS // count))
    own = count / (count + ASSUMED_RUNS)
    points = []
    for index, one in enumerate(ordered[: int(count * _WORTH) + 2]):
        parts = max(split, FINE) if index < TAIL else split
        held, mass = own * one.held / parts, own / parts
        points += [(one.distance + width * each, held, mass) for each in _student_points(parts, HEAVY_TAIL)]
    half = middle([one.distance for one in ordered])
    mass = (1 - own) * count / (2 * _ASSUMED_POINTS)
    held = mass * sum(one.held for one in ordered) / count
    scale = _OF_NORMAL * spread * sqrt(1 + 1 / count)
    freedom = max(2, min(count - 1, _MOST_FREEDOM))
    upper_half = _student_points(2 * _ASSUMED_POINTS, freedom)[_ASSUMED_POINTS:]
    points += [(half + scale * each, held, mass) for each in upper_half]
    points.sort(reverse=True)
    return points


def _least_cost(points: Sequence[_Point], held: float, largest: float, price: Price) -> tuple[float, float, float]:
    """The least cost, the margin that has it, and the mass of the points that fail with it."""
    least_cost, least_distance, least_failing = float("inf"), 0.0, 0.0
    most = exp(largest)
    held_failing = failing = 0.0
    for distance, part, mass in points:
        if held_failing * most + price.failure * failing >= least_cost:
            break  # failures alone cost more, and so do those of all smaller margins
        factor = exp(distance)
        retry = _RETRY * factor
        cost = factor * held + held_failing * (retry if retry > most else most) + price.failure * failing
        if cost < least_cost:
            least_cost, least_distance, least_failing = cost, distance, failing
        held_failing += part
        failing += mass
    return least_cost, least_distance, least_failing


def pooled(spread: float, count: int, usual: float) -> float:
    """The spread of a job combined with that of other jobs: a geometric mean, so that the larger does not dominate."""
    own, others = log(max(spread, NARROWEST)), log(max(usual, NARROWEST))
    both = exp((count * own + SPREAD_RUNS * others) / (count + SPREAD_RUNS))
    return max(both, usual) if count < FEW else both


def upper_spread(descending: Sequence[float]) -> float:
    """How far the upper half lies above the median, as a root mean square in which a few far values hardly count."""
    half = middle(descending)
    above = [distance - half for distance in descending[: (len(descending) + 1) // 2]]
    most = 2 * middle(above)
    return sqrt(sum(min(each, most) ** 2 for each in above) / len(above))


@lru_cache
def _student_points(count: int, freedom: int) -> tuple[float, ...]:
    """Points of equal mass of a Student distribution: as many below 0 as above."""
    above = [_student_quantile((index + 0.5) / count, freedom) for index in range((count + 1) // 2, count)]
    return (*(-point for point in reversed(above)), *([0.0] if count % 2 else []), *above)


def _student_quantile(share: float, freedom: int) -> float:
    """The quantile of a Student distribution, by the series of Abramowitz and Stegun 26.7.5.

    It starts from the normal distribution, is right to about 1 %, and is a hundred times faster than the exact one.
    """
    x = NormalDist().inv_cdf(share)
    square = x * x
    terms = (
        x * (square + 1) / 4,
        x * ((5 * square + 16) * square + 3) / 96,
        x * (((3 * square + 19) * square + 17) * square - 15) / 384,
        x * ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return x + sum(term * float(freedom) ** -power for power, term in enumerate(terms, 1))
