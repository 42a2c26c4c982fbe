"""Models that predict what the next run needs: five simple ones, each of which learns one run at a time.

All work with logarithms of needs: needs are positive and differ by factors. A model can also forget a run. This makes
it possible to predict each run from all others, and bounds the number of runs that are kept.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from math import exp, log
from typing import Protocol

from jobmeter.analyse.size.advice import Law

NEAREST = 5
"""How many runs with the most similar feature are looked at: their largest need is the prediction."""
RECENT = 3
_FARTHEST = 3.0
"""How far an extrapolation may go beyond the observed needs, as a power of e."""
_LARGEST_EXPONENT = 600.0
"""Of the factor in a formula, as a power of e: with its margin it is still a float, which ends at 709."""


class Model(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def feature(self) -> str | None:
        """The name of the feature that the model uses; None: it uses none."""

    def predict(self, value: float) -> float:
        """The predicted logarithm of the need, if the feature has this value; at least one run must be known."""

    def learn(self, value: float, need: float) -> None:
        """Add a run with this value of the feature and this logarithm of its need."""

    def forget(self, value: float, need: float) -> None:
        """Remove a run that was added."""


def middle(ordered: Sequence[float]) -> float:
    """The median of sorted numbers."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


class Median:
    """The median of all runs."""

    name = "median"
    feature = None

    def __init__(self) -> None:
        self._ordered: list[float] = []

    def predict(self, value: float) -> float:
        return middle(self._ordered)

    def learn(self, value: float, need: float) -> None:
        insort(self._ordered, need)

    def forget(self, value: float, need: float) -> None:
        del self._ordered[bisect_left(self._ordered, need)]


class Recent:
    """The mean of the last few runs: it follows a job whose needs change with time."""

    name = "recent"
    feature = None

    def __init__(self) -> None:
        self._needs: list[float] = []

    def predict(self, value: float) -> float:
        last = self._needs[-RECENT:]
        return sum(last) / len(last)

    def learn(self, value: float, need: float) -> None:
        self._needs.append(need)
        del self._needs[: -2 * RECENT]

    def forget(self, value: float, need: float) -> None:
        """Do nothing: `learn` drops old runs."""

    @staticmethod
    def without(needs: Sequence[float], index: int) -> float:
        """The prediction for one run from those before it; for the first from those after it."""
        others = needs[max(index - RECENT, 0) : index] or needs[index + 1 : index + 1 + RECENT]
        return sum(others) / len(others)


class _Line:
    """Least squares from running sums. Values are relative to the first run, so that differences lose no digits."""

    def __init__(self) -> None:
        self._origin: tuple[float, float] | None = None
        self._count = 0
        self._x = self._y = self._xx = self._xy = 0.0

    def add(self, x: float, y: float, sign: int) -> None:
        if self._origin is None:
            self._origin = x, y
        x, y = x - self._origin[0], y - self._origin[1]
        self._count += sign
        self._x += sign * x
        self._y += sign * y
        self._xx += sign * x * x
        self._xy += sign * x * y

    def at(self, x: float) -> float:
        base, slope = self.formula()
        return base + slope * x

    def formula(self) -> tuple[float, float]:
        """The value of the line at 0, and its slope."""
        assert self._origin is not None, "no run is known"
        mean_x, mean_y = self._x / self._count, self._y / self._count
        around = self._xx - self._x * mean_x
        # If all runs have the same x, sums that should cancel leave a small remainder.
        flat = around <= 1e-9 * self._xx or self._count < 2
        slope = 0.0 if flat else (self._xy - self._x * mean_y) / around
        return mean_y + self._origin[1] - slope * (mean_x + self._origin[0]), slope


class Line:
    """The need is a linear function of the feature."""

    name = "line"

    def __init__(self, feature: str) -> None:
        self.feature = feature
        self._line = _Line()
        self._least = float("inf")
        self._most = float("-inf")

    def predict(self, value: float) -> float:
        need = self._line.at(value)
        least = exp(self._least) / 2  # a line can fall below zero, a need cannot
        return min(log(max(need, least)), self._most + _FARTHEST)

    def learn(self, value: float, need: float) -> None:
        self._least, self._most = min(self._least, need), max(self._most, need)
        self._line.add(value, exp(need), 1)

    def forget(self, value: float, need: float) -> None:
        self._line.add(value, exp(need), -1)

    def law(self, factor: float, plus: float) -> Law:
        """The prediction as a formula, times a margin (`factor`) and plus a constant."""
        base, slope = self._line.formula()
        return Law(self.feature, factor * base + plus, factor * slope, 1.0)


class Power:
    """The need is proportional to a power of the feature."""

    name = "power law"

    def __init__(self, feature: str) -> None:
        self.feature = feature
        self._line = _Line()
        self._least = float("inf")
        self._most = float("-inf")

    def predict(self, value: float) -> float:
        need = self._line.at(logarithm(value))
        return min(max(need, self._least - _FARTHEST), self._most + _FARTHEST)

    def learn(self, value: float, need: float) -> None:
        self._least, self._most = min(self._least, need), max(self._most, need)
        self._line.add(logarithm(value), need, 1)

    def forget(self, value: float, need: float) -> None:
        self._line.add(logarithm(value), need, -1)

    def law(self, factor: float, plus: float) -> Law | None:
        """The prediction as a formula, times a margin (`factor`) and plus a constant.

        None if the feature hardly differs from run to run: the power is then so large that no number is its factor.
        """
        base, slope = self._line.formula()
        return Law(self.feature, plus, factor * exp(base), slope) if abs(base) <= _LARGEST_EXPONENT else None


class Nearest:
    """The largest need of the runs whose feature is most similar: it assumes no formula, and follows steps."""

    name = "nearest runs"

    def __init__(self, feature: str) -> None:
        self.feature = feature
        self._ordered: list[tuple[float, float]] = []

    def predict(self, value: float) -> float:
        place = logarithm(value)
        above = bisect_left(self._ordered, (place, float("-inf")))
        below = above - 1
        runs, last = self._ordered, len(self._ordered) - 1
        largest = float("-inf")
        for _ in range(min(NEAREST, len(runs))):
            if above > last or (below >= 0 and place - runs[below][0] <= runs[above][0] - place):
                largest = max(largest, runs[below][1])
                below -= 1
            else:
                largest = max(largest, runs[above][1])
                above += 1
        return largest

    def learn(self, value: float, need: float) -> None:
        insort(self._ordered, (logarithm(value), need))

    def forget(self, value: float, need: float) -> None:
        del self._ordered[bisect_left(self._ordered, (logarithm(value), need))]


def logarithm(value: float) -> float:
    """The logarithm of a feature; below 1 a straight line, as a feature may be 0 or negative."""
    return log(value) if value >= 1 else value - 1


WITHOUT_FEATURE = (Median, Recent)
OF_FEATURE = (Line, Power, Nearest)
