"""The margin of least cost: what to multiply a prediction with, by how far it was from the needs of the past.

The residuals of a model, needs over predictions, are the sample; each is widened to a few points of a Student
distribution, for a next run is never quite like one of the past. Of all margins the one is taken that would have
cost least: what is requested and not used, what a failed attempt and its retry hold, and a price of each failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import cos, exp, log, pi, sin, sqrt, tan
from typing import NamedTuple

from jobmeter.analyse.size.models import middle

WIDTH = 4.0
"""Times the spread of the residuals, that each of them is widened to; less with more runs."""
DECAY = 0.4
"""The power of the number of runs by which that falls."""
NARROWEST = 0.001
FINE, TAIL = 24, 4
"""Points of each of the largest residuals, and how many these are: they decide how rare a failure is."""
SPREAD_RUNS = 1.0
"""Runs that the spread of other jobs of the workflow stands for, beside a job's own."""
FEW = 4
"""Runs below which a spread may be small by luck, and is not taken for less than that of other jobs."""
_POINTS, _LEAST_POINTS, _MOST_POINTS = 64, 2, 8
_STEPS = 12
"""Of a quantile of Student's distribution, after which it is exact for shares up to 0.999."""
_RETRY = 1.3
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
    failing: float  # the share of past runs that would have failed, widened


class Price(NamedTuple):
    """What decides beside the residuals."""

    failure: float  # the cost of one failure, in the unit of what is held
    usual_spread: float  # of the jobs of the workflow


def choose_margin(residuals: Sequence[Residual], price: Price) -> Margin:
    """The margin of least cost, of at least one residual."""
    count = len(residuals)
    ordered = sorted(residuals, reverse=True)
    spread = pooled(upper_spread([one.distance for one in ordered]), count, price.usual_spread)
    width = max(NARROWEST, WIDTH * spread * count**-DECAY)
    split = max(_LEAST_POINTS, min(_MOST_POINTS, _POINTS // count))
    points = []
    for index, one in enumerate(ordered[: int(count * _WORTH) + 2]):
        parts = max(split, FINE) if index < TAIL else split
        points += [(one.distance + width * each, one.held / parts, 1 / parts) for each in _student_points(parts)]
    points.sort(reverse=True)
    held, used = sum(one.held for one in ordered), sum(one.used for one in ordered)
    largest = exp(ordered[0].distance)
    least_cost, least_distance, least_failing = float("inf"), 0.0, 0.0
    held_failing = failing = 0.0
    for distance, part, mass in points:
        if held_failing * largest + price.failure * failing >= least_cost:
            break  # failures alone cost more, and those of smaller margins too
        factor = exp(distance)
        retry = _RETRY * factor
        cost = factor * held + held_failing * (retry if retry > largest else largest) + price.failure * failing
        if cost < least_cost:
            least_cost, least_distance, least_failing = cost, distance, failing
        held_failing += part
        failing += mass
    return Margin(least_cost / used, least_distance, spread, least_failing / count)


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
def _student_points(count: int) -> tuple[float, ...]:
    """Points of equal mass: as many below 0 as above."""
    above = [_student_quantile((index + 0.5) / count) for index in range((count + 1) // 2, count)]
    return (*(-point for point in reversed(above)), *([0.0] if count % 2 else []), *above)


def _student_quantile(share: float) -> float:
    """Of 3 degrees of freedom, above the median: the tangent of an angle whose share is known in closed form."""
    angle = 0.0
    for _ in range(_STEPS):  # from below, each step of Newton's comes nearer: the share is concave in the angle
        angle += (pi * (share - 0.5) - angle - sin(2 * angle) / 2) / (1 + cos(2 * angle))
    return sqrt(3.0) * tan(angle)
