"""Values over time: means weighted by time, peaks, and for how long a line was crossed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class RunningStat:
    """Mean over time, peak, minimum and last of values that come one by one."""

    __slots__ = ("_plain", "_sum", "count", "last", "minimum", "peak", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0  # that the values stand for
        self.peak = float("-inf")
        self.minimum = float("inf")
        self.last = 0.0
        self._sum = self._plain = 0.0

    def add(self, value: float, span: float) -> None:
        """A value that held for `span` seconds."""
        self.count += 1
        self.seconds += span
        self._sum += value * span
        self._plain += value
        self.peak, self.minimum, self.last = max(self.peak, value), min(self.minimum, value), value

    @property
    def mean(self) -> float:
        """Weighted by time; of values that stand for no time, the plain mean."""
        if self.seconds > 0:
            return self._sum / self.seconds
        return self._plain / self.count if self.count else 0.0


def weighted(one: Mapping[str, float], span: float, other: Mapping[str, float], other_span: float) -> dict[str, float]:
    """Two sets of values as one, each weighted by its time; what only one of them has is taken as it is."""
    whole = span + other_span
    merged = {**one, **other}
    for key in one.keys() & other.keys():
        merged[key] = (one[key] * span + other[key] * other_span) / whole if whole > 0 else other[key]
    return merged


class Point(NamedTuple):
    """What held for `span` seconds, until `seconds`."""

    seconds: float
    span: float
    holds: bool


class Spell(NamedTuple):
    """A time in which something held without a longer break."""

    start: float
    end: float
    seconds: float  # in which it really held

    def covers(self, seconds: float) -> bool:
        return self.start <= seconds <= self.end


def spells(points: Iterable[Point], bridge: float) -> list[Spell]:
    """The times in which it held; breaks of up to `bridge` seconds between two of them do not end one."""
    found: list[Spell] = []
    for point in points:
        if not point.holds or point.span <= 0:
            continue
        start = point.seconds - point.span
        if found and start - found[-1].end <= bridge + 1e-6:
            last = found.pop()
            found.append(Spell(last.start, point.seconds, last.seconds + point.span))
        else:
            found.append(Spell(start, point.seconds, point.span))
    return found


def lasting(points: Iterable[Point], least: float) -> list[Spell]:
    """The times of at least `least` seconds in which it held. Breaks of a tenth of that are bridged."""
    return [spell for spell in spells(points, least / 10) if spell.seconds >= least - 1e-6]


def held_for(found: Iterable[Spell]) -> float:
    """Seconds, all times together."""
    return sum(spell.seconds for spell in found)
