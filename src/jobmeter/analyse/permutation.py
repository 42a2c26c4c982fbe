"""Whether two groups of values differ, tested without assuming how the values are distributed.

If the groups did not differ, every way of dealing the values out to them would be as likely as the one
observed. The share of deals that differ as much is the p-value. The same deals give the interval: a deal
that swaps some values of A for some of B is as extreme as the one observed exactly when B is `r` times A,
with `r` the ratio of the sums that were swapped (Tritchler 1984, J. Am. Stat. Assoc. 79, 200). The
middle 95 % of these ratios are the ratios that the test does not reject, so p-value and interval never disagree.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, variance
from typing import NamedTuple

CONFIDENCE = 0.95
_EXACT = 20_000
"""Up to this number of deals, all are computed; two groups of 8 values have 12,870."""
_DRAWS = 5_000
_SEED = 20_001
_MANY = 50
"""With more values than this in both groups, the means count as normally distributed, and no deals are needed."""


class Evidence(NamedTuple):
    """The result of the test of B against A."""

    p: float  # two-sided
    interval: tuple[float, float] | None  # of the ratio of the means, B to A; None where A is zero


def evidence(a: Sequence[float], b: Sequence[float]) -> Evidence | None:
    """p-value and interval; None when there are too few values for any result to be distinguished from chance."""
    if min(len(a), len(b)) < 2 or 2 / math.comb(len(a) + len(b), len(a)) > 1 - CONFIDENCE:
        return None
    if min(len(a), len(b)) > _MANY:
        return _of_means(a, b)
    return _of_deals(a, b)


def _of_deals(a: Sequence[float], b: Sequence[float]) -> Evidence:
    """The evidence from deals. The smaller group comes first, since what it gets determines the deal."""
    small, large, turned = (a, b, False) if len(a) <= len(b) else (b, a, True)
    count, pool, whole = len(small), [*small, *large], math.fsum(small)
    swaps = []
    at_most = at_least = 0
    # Sums of the same numbers in another order differ in their last digits.
    slack = 1e-12 * math.fsum(map(abs, pool))
    for dealt in _deals(count, len(pool)):
        stayed = taken = 0.0
        for index in dealt:
            if index < count:
                stayed += pool[index]
            else:
                taken += pool[index]
        given = whole - stayed
        at_most += taken - given <= slack
        at_least += taken - given >= -slack
        swaps.append((taken, given) if turned else (given, taken))
    deals = len(swaps) + 1  # with the observed one
    p = min(1.0, 2 * min(at_most + 1, at_least + 1) / deals)
    return Evidence(p, _middle(swaps, deals))


def _middle(swaps: list[tuple[float, float]], deals: int) -> tuple[float, float] | None:
    """The interval of ratios that are not rejected: less than 2.5 % of the deals lie beyond either end of it.

    None if a ratio is negative or undefined.
    """
    if not all(given > 0 and taken >= 0 for given, taken in swaps):
        return None
    ratios = sorted(taken / given for given, taken in swaps)
    beyond = max(math.floor((1 - CONFIDENCE) / 2 * deals + 1e-9) - 1, 0)
    return ratios[beyond], ratios[-1 - beyond]


@lru_cache(maxsize=4)
def _all_or_some(count: int, size: int) -> tuple[tuple[int, ...], ...]:
    if math.comb(size, count) <= _EXACT:
        return tuple(itertools.islice(itertools.combinations(range(size), count), 1, None))
    # Seeded: the same runs compared again give the same answer.
    generator = random.Random(_SEED)
    return tuple(tuple(generator.sample(range(size), count)) for _ in range(_DRAWS))


def _deals(count: int, size: int) -> Iterator[tuple[int, ...]]:
    """What the first group gets in each deal except the observed one, as indexes of the pool."""
    original = set(range(count))
    return (deal for deal in _all_or_some(count, size) if not original.issuperset(deal))


def _of_means(a: Sequence[float], b: Sequence[float]) -> Evidence:
    """Welch's test with the normal distribution, and the interval of the ratio by the error of its logarithm."""
    mean_a, mean_b = fmean(a), fmean(b)
    square_a, square_b = variance(a, mean_a) / len(a), variance(b, mean_b) / len(b)
    error = math.sqrt(square_a + square_b)
    normal = NormalDist()
    distance = abs(mean_b - mean_a)
    p = 2 * normal.cdf(-distance / error) if error else float(distance == 0)
    if mean_a <= 0 or mean_b <= 0:
        return Evidence(p, None)
    width = normal.inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(square_a / mean_a**2 + square_b / mean_b**2)
    ratio = mean_b / mean_a
    return Evidence(p, (ratio * math.exp(-width), ratio * math.exp(width)))
