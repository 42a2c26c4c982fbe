"""Values over time: means weighted by time, peaks, and how long a condition held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class RunningStat:
    """Time-weighted mean, peak, minimum and last of values that are added one by one."""

    __slots__ = ("_plain", "_sum", "count", "last", "minimum", "peak", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0  # that the values cover
        self.peak = float("-inf")
        self.minimum = float("inf")
        self.last = 0.0
        self._sum = self._plain = 0.0

    def add(self, value: float, span: float) -> None:
        """Add a value that held for `span` seconds."""
        self.count += 1
        self.seconds += span
        self._sum += value * span
        self._plain += value
        self.peak, self.minimum, self.last = max(self.peak, value), min(self.minimum, value), value

    @property
    def mean(self) -> float:
        """The mean weighted by time; the plain mean if the values cover no time."""
        if self.seconds > 0:
            return self._sum / self.seconds
        return self._plain / self.count if self.count else 0.0


def weighted(one: Mapping[str, float], span: float, other: Mapping[str, float], other_span: float) -> dict[str, float]:
    """Merge two sets of values, weighted by their spans; a value that only one set has is taken as it is."""
    whole = span + other_span
    merged = {**one, **other}
    for key in one.keys() & other.keys():
        merged[key] = (one[key] * span + other[key] * other_span) / whole if whole > 0 else other[key]
    return merged


class Point(NamedTuple):
    """Whether a condition held for the `span` seconds until `seconds`."""

    seconds: float
    span: float
    holds: bool


class Spell(NamedTuple):
    """A period in which a condition held without a longer break."""

    start: float
    end: float
    seconds: float  # in which it held, without the breaks

    def covers(self, seconds: float) -> bool:
        return self.start <= seconds <= self.end


def spells(points: Iterable[Point], bridge: float) -> list[Spell]:
    """The periods in which the condition held; a break of up to `bridge` seconds does not end a period."""
    merged: list[Spell] = []
    for point in points:
        if not point.holds or point.span <= 0:
            continue
        start = point.seconds - point.span
        if merged and start - merged[-1].end <= bridge + 1e-6:
            last = merged.pop()
            merged.append(Spell(last.start, point.seconds, last.seconds + point.span))
        else:
            merged.append(Spell(start, point.seconds, point.span))
    return merged


def lasting(points: Iterable[Point], least: float) -> list[Spell]:
    """The periods in which the condition held for at least `least` seconds. Breaks of a tenth of that are bridged."""
    return [spell for spell in spells(points, least / 10) if spell.seconds >= least - 1e-6]


def held_for(periods: Iterable[Spell]) -> float:
    """The seconds in which the condition held, over all periods."""
    return sum(spell.seconds for spell in periods)
