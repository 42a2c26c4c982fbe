"""The margin of least cost: what to multiply a prediction with, by how far it was from the needs of the past.

The residuals of a model, needs over predictions, are the sample; each is widened to a few points of a Student
distribution, for a next run is never quite like one of the past. A few more runs are assumed that vary as a normal
distribution of this spread would: what lies above all of a small sample is rather known from its spread than from its
largest. Of all margins the one is taken that would have cost least: what is requested and not used, what a failed
attempt and its retry hold, and a price of each failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, log, sqrt
from statistics import NormalDist
from typing import NamedTuple

from jobmeter.analyse.size.models import middle

WIDTH = 5.2
"""Times the spread of the residuals, that each of them is widened to; less with more runs."""
DECAY = 0.6
"""The power of the number of runs by which that falls."""
WIDEST, NARROWEST = 1.6, 0.001
"""At most so many times the spread; at least so much."""
HEAVY_TAIL = 3
"""Degrees of freedom of the distribution that each is widened to."""
FINE, TAIL = 24, 4
"""Points of each of the largest residuals, and how many these are: they decide how rare a failure is."""
ASSUMED_RUNS = 10.0
"""Runs that are assumed beside those of the past."""
_ASSUMED_POINTS = 48
_MOST_FREEDOM = 60
"""Degrees of freedom, from which on a sample hardly differs from a normal distribution."""
_OF_NORMAL = 1.19
"""The standard deviation of a normal distribution whose `upper_spread` is 1."""
OPTIMISM, MOST_OPTIMISM = 12.0, 1.0
"""Over the number of runs, by how much more will fail than the runs say that the margin was chosen by; at most."""
SPREAD_RUNS = 1.0
"""Runs that the spread of other jobs of the workflow stands for, beside a job's own."""
FEW = 4
"""Runs below which a spread may be small by luck, and is not taken for less than that of other jobs."""
_POINTS, _LEAST_POINTS, _MOST_POINTS = 64, 2, 8
_RETRY = 1.1
"""The least factor by which a retry is larger."""
_WORTH = 0.4
"""The share of failures beyond which no margin is of least cost."""


class Residual(NamedTuple):
    """How one model did on one run that it had not seen."""

    distance: float  # the logarithm of need over prediction
    held: float  # the prediction, times the seconds it is held for
    used: float  # the need, times these seconds


class Margin(NamedTuple):
    """What to add to the logarithm of a prediction."""

    cost: float  # of the past runs, as a multiple of what they used
    distance: float
    spread: float
    failing: float  # the share of runs that is expected to fail


class Price(NamedTuple):
    """What decides beside the residuals."""

    failure: float  # the cost of one failure, in the unit of what is held
    usual_spread: float  # of the jobs of the workflow


_Point = tuple[float, float, float]
"""A part of a run that may come: its distance, what is held for it, its mass."""


def choose_margin(residuals: Sequence[Residual], price: Price) -> Margin:
    """The margin of least cost, of at least one residual."""
    count = len(residuals)
    ordered = sorted(residuals, reverse=True)
    spread = pooled(upper_spread([one.distance for one in ordered]), count, price.usual_spread)
    held, used = sum(one.held for one in ordered), sum(one.used for one in ordered)
    cost, distance, failing = _least_cost(_points(ordered, spread), held, ordered[0].distance, price)
    return Margin(cost / used, distance, spread, _expected(failing, count))


def failing_above(residuals: Sequence[Residual], spread: float, distance: float) -> float:
    """The share of runs that is expected to fail with a smaller margin than the chosen one, whose spread this is."""
    points = _points(sorted(residuals, reverse=True), spread)
    return _expected(sum(mass for above, _, mass in points if above > distance), len(residuals))


def _expected(failing: float, count: int) -> float:
    """The share of runs to come that fail, of so many failing of so many of the past."""
    return min(failing / count * (1 + min(OPTIMISM / count, MOST_OPTIMISM)), 1.0)


def choose_retry(residuals: Sequence[Residual], price: Price, spread: float, above: float) -> float | None:
    """The margin of least cost for a run that needed more than one; None when nothing is known of such runs."""
    ordered = sorted(residuals, reverse=True)
    points = [point for point in _points(ordered, spread) if point[0] > above]
    if not points:
        return None
    return _least_cost(points, sum(held for _, held, _ in points), ordered[0].distance, price)[1]


def _points(ordered: Sequence[Residual], spread: float) -> list[_Point]:
    """What may come, the largest first; without what is so small that it decides nothing."""
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
    """The cost, the margin that has it, and the mass of what fails with it."""
    least_cost, least_distance, least_failing = float("inf"), 0.0, 0.0
    most = exp(largest)
    held_failing = failing = 0.0
    for distance, part, mass in points:
        if held_failing * most + price.failure * failing >= least_cost:
            break  # failures alone cost more, and those of smaller margins too
        factor = exp(distance)
        retry = _RETRY * factor
        cost = factor * held + held_failing * (retry if retry > most else most) + price.failure * failing
        if cost < least_cost:
            least_cost, least_distance, least_failing = cost, distance, failing
        held_failing += part
        failing += mass
    return least_cost, least_distance, least_failing


def pooled(spread: float, count: int, usual: float) -> float:
    """The spread of a job and that of others together: factors, of which neither outweighs the other by its size."""
    own, others = log(max(spread, NARROWEST)), log(max(usual, NARROWEST))
    both = exp((count * own + SPREAD_RUNS * others) / (count + SPREAD_RUNS))
    return max(both, usual) if count < FEW else both


def upper_spread(descending: Sequence[float]) -> float:
    """How far the upper half lies above the median, by the mean square; a few that lie far off hardly count."""
    half = middle(descending)
    above = [distance - half for distance in descending[: (len(descending) + 1) // 2]]
    most = 2 * middle(above)
    return sqrt(sum(min(each, most) ** 2 for each in above) / len(above))


@lru_cache
def _student_points(count: int, freedom: int) -> tuple[float, ...]:
    """Points of equal mass: as many below 0 as above."""
    above = [_student_quantile((index + 0.5) / count, freedom) for index in range((count + 1) // 2, count)]
    return (*(-point for point in reversed(above)), *([0.0] if count % 2 else []), *above)


def _student_quantile(share: float, freedom: int) -> float:
    """By the series of Abramowitz and Stegun 26.7.5, from the normal distribution.

    It is good to about 1 % and a hundred times faster than the exact one.
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
