"""Aggregation: processes into one value, values into a window, windows into a run.

Nothing here reads a source or knows a particular measurement: how a value is
aggregated follows from the description of its measurement.
"""

from __future__ import annotations

import math

from jobmeter.collectors.contract import Column
from jobmeter.light_typing import Any, Union
from jobmeter.model import Across, Gauge, Kind, Measurement, Number, Value

_BUCKET = math.log(1.01)
_MOST_LABELS = 20


def combine(measurement: Measurement, column: Column) -> Value | None:
    """One value for the job from one value per process; None when there are no processes."""
    if not column:
        return None
    if measurement.across is Across.TALLY:
        tally: dict[str, float] = {}
        for value in column:
            tally[str(value)] = tally.get(str(value), 0) + 1
        return tally
    numbers: list[Any] = column
    if measurement.across is Across.SUM:
        total: Number = sum(numbers)
        return total
    if measurement.across is Across.MAX:
        largest: Number = max(numbers)
        return largest
    return column[-1]


class GaugeAggregate:
    """A level or a rate over time; each value with the seconds it stands for."""

    __slots__ = ("_histogram", "_seconds", "_weighted", "minimum", "peak")

    def __init__(self) -> None:
        self.peak: Number = -math.inf
        self.minimum: Number = math.inf
        self._weighted = 0.0
        self._seconds = 0.0
        self._histogram: dict[int, float] = {}

    def add(self, value: Number, seconds: float) -> None:
        """Add a value that held for so many seconds; 0 when that is not known yet."""
        if value > self.peak:
            self.peak = value
        if value < self.minimum:
            self.minimum = value
        if seconds > 0:
            self._weighted += value * seconds
            self._seconds += seconds
            # Buckets of 1 %: as good as storing every value, and bounded.
            bucket = round(math.log(value) / _BUCKET) if value > 0 else -10_000
            self._histogram[bucket] = self._histogram.get(bucket, 0.0) + seconds

    def merge(self, later: GaugeAggregate) -> None:
        self.peak = max(self.peak, later.peak)
        self.minimum = min(self.minimum, later.minimum)
        self._weighted += later._weighted
        self._seconds += later._seconds
        for bucket, seconds in later._histogram.items():
            self._histogram[bucket] = self._histogram.get(bucket, 0.0) + seconds

    @property
    def mean(self) -> float:
        return self._weighted / self._seconds if self._seconds else float(self.peak)

    @property
    def p95(self) -> float:
        """The level not exceeded during 95 % of the time, to within 1 %."""
        below = 0.0
        for bucket in sorted(self._histogram):
            below += self._histogram[bucket]
            if below >= 0.95 * self._seconds:
                return min(math.exp(bucket * _BUCKET) if bucket > -10_000 else 0.0, self.peak)
        return float(self.peak)

    def cell(self, unit: str) -> Any:
        """For the journal: the peak alone where the level did not move, else peak and mean."""
        peak, mean = tidy(self.peak, unit), tidy(self.mean, unit)
        return peak if peak == mean else [peak, mean]

    def summary(self, unit: str) -> dict[str, Any]:
        return {
            "peak": tidy(self.peak, unit),
            "mean": tidy(self.mean, unit),
            "min": tidy(self.minimum, unit),
            "p95": tidy(self.p95, unit),
        }


class MarkAggregate:
    """A high-water mark: the highest value so far, kept by the kernel. It has no course over time, and so no mean."""

    __slots__ = ("_peak",)

    def __init__(self) -> None:
        self._peak: Number = -math.inf

    def add(self, value: Number, seconds: float) -> None:
        self._peak = max(self._peak, value)

    def merge(self, later: MarkAggregate) -> None:
        self._peak = max(self._peak, later._peak)

    def cell(self, unit: str) -> Any:
        return tidy(self._peak, unit)

    def summary(self, unit: str) -> dict[str, Any]:
        return {"peak": tidy(self._peak, unit)}


class CounterAggregate:
    """A counter: its increase. A counter that falls was reset or misread, and adds nothing."""

    __slots__ = ("_first", "_last")

    def __init__(self, first: Number = 0) -> None:
        self._first = first
        self._last = first

    def add(self, value: Number, seconds: float) -> None:
        self._last = max(self._last, value)

    def merge(self, later: CounterAggregate) -> None:
        self._last = max(self._last, later._last)

    @property
    def last(self) -> Number:
        return self._last

    def cell(self, unit: str) -> Any:
        return tidy(self._last - self._first, unit)

    def summary(self, unit: str) -> dict[str, Any]:
        return {"total": tidy(self._last - self._first, unit)}


class LabelAggregate:
    """A text: the last value, and the distinct values."""

    __slots__ = ("_distinct", "_last")

    def __init__(self) -> None:
        self._last = ""
        self._distinct: dict[str, None] = {}

    def add(self, value: str, seconds: float) -> None:
        self._last = value
        if len(self._distinct) < _MOST_LABELS:
            self._distinct[value] = None

    def merge(self, later: LabelAggregate) -> None:
        for value in (*later._distinct, later._last):
            self.add(value, 0.0)

    def cell(self, unit: str) -> Any:
        return self._last

    def summary(self, unit: str) -> dict[str, Any]:
        return {"last": self._last, "distinct": list(self._distinct)}


class CategoryAggregate:
    """A category, one of a few values: how often each was read."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, float] = {}

    def add(self, value: dict[str, float], seconds: float) -> None:
        for name, count in value.items():
            self._counts[name] = self._counts.get(name, 0) + count

    def merge(self, later: CategoryAggregate) -> None:
        self.add(later._counts, 0.0)

    def cell(self, unit: str) -> Any:
        total = sum(self._counts.values()) or 1
        return {name: round(count / total, 3) for name, count in self._counts.items()}

    def summary(self, unit: str) -> dict[str, Any]:
        return {"share": self.cell(unit)}


Aggregate = Union[GaugeAggregate, MarkAggregate, CounterAggregate, LabelAggregate, CategoryAggregate]


def new_aggregate(measurement: Measurement, first: Number = 0) -> Aggregate:
    """An empty aggregate; that of a counter begins at `first`."""
    kind = measurement.kind
    if kind is Kind.GAUGE:
        return MarkAggregate() if measurement.gauge is Gauge.MARK else GaugeAggregate()
    if kind is Kind.COUNTER:
        return CounterAggregate(first)
    return LabelAggregate() if kind is Kind.LABEL else CategoryAggregate()


def tidy(value: Number, unit: str) -> Number:
    """A number rounded to the digits that carry meaning."""
    if unit in ("bytes", "count"):
        return round(value) if unit == "bytes" or value == round(value) else round(value, 2)
    return round(value, 2 if unit == "percent" else 6)
