"""Student's t distribution, for any number of degrees of freedom, whole or not."""

from __future__ import annotations

from math import exp, isinf, lgamma, log, log1p

_SMALL = 1e-300
_CLOSE = 1e-15
_MOST_TERMS = 10_000


def cdf(value: float, freedom: float) -> float:
    """The probability of a value below `value`. Raises ValueError unless `freedom` is above 0."""
    if freedom <= 0:
        raise ValueError(f"{freedom} degrees of freedom")
    beyond = 0.0 if isinf(value) else beta(freedom / (freedom + value * value), freedom / 2, 0.5) / 2
    return 1 - beyond if value > 0 else beyond


def quantile(level: float, freedom: float) -> float:
    """The value below which the share `level` of the distribution lies.

    Raises ValueError unless 0 < `level` < 1 and `freedom` is above 0.
    """
    if not 0 < level < 1:
        raise ValueError(f"a quantile lies between 0 and 1, not at {level}")
    if level < 0.5:
        return -quantile(1 - level, freedom)
    low, high = 0.0, 1.0
    while cdf(high, freedom) < level:
        low, high = high, high * 2
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if cdf(middle, freedom) < level else (low, middle)
    return high


def beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Numerical Recipes 6.4)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(1 - x, b, a)  # there the fraction converges
    before = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    return before * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction, by Lentz's method."""
    c = 1.0
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 / _away_from_zero(1 + step * d)
            c = _away_from_zero(1 + step / c)
            result *= d * c
        if abs(d * c - 1) < _CLOSE:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _SMALL else _SMALL
