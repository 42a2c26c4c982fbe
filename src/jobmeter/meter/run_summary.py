"""Adds up the readings of one job: the present window, and the run so far.

Nothing here reads anything: what a reading stands for follows from the description of its measurement.
"""

from __future__ import annotations

from jobmeter.collectors.contract import Readings
from jobmeter.meter.aggregate import Aggregate, CounterAggregate, combine, new_aggregate
from jobmeter.model import Gauge, Kind, Measurement, Number, Value

_AT_THE_START = 0.1
"""Seconds from the start of a job within which the first reading of a level holds for the time before it, too."""


class RunSummary:
    """Windows and the run they make up.

    A level holds from its reading to the next one, or to the end of the job. A rate stands for the time since the
    reading before. What is read once the job has ended is no level of it any more.
    """

    def __init__(self, measurements: dict[str, Measurement], started: float) -> None:
        self.started = started
        self._measurements = measurements
        self._levels = {m.key for m in measurements.values() if m.kind is Kind.GAUGE and m.gauge is Gauge.LEVEL}
        self._final = {m.key for m in measurements.values() if m.kind is Kind.COUNTER} | {
            m.key for m in measurements.values() if m.kind is Kind.GAUGE and m.gauge is not Gauge.LEVEL
        }
        self._run: dict[str, Aggregate] = {}
        self._window: dict[str, Aggregate] = {}
        self._held: dict[str, tuple[Number, float]] = {}  # level, since when
        self._read_at: dict[str, float] = {}

    def add(self, readings: Readings, now: float, *, job_ended: bool = False) -> dict[str, Value]:
        """Add what a source read at `now`; return it, one value for the job each.

        Of a job that has ended only counters, rates and marks count.
        """
        values: dict[str, Value] = {}
        for key, reading in readings.items():
            measurement = self._measurements.get(key)
            if measurement is None or (job_ended and key not in self._final):
                continue
            value = combine(measurement, reading) if isinstance(reading, list) else reading
            if value is None:
                continue
            values[key] = value
            summary = self._summary_of(key)
            if key in self._levels:
                self._count_held(key, now)
                if key not in self._held and now - self.started < _AT_THE_START:
                    self._summary_of(key).add(value, now - self.started)  # type: ignore[arg-type]
                self._held[key] = (value, now)  # type: ignore[assignment]
                seconds = 0.0
            else:
                seconds = now - self._read_at.get(key, self.started)
                self._read_at[key] = now
            summary.add(value, seconds)  # type: ignore[arg-type]
        return values

    def end_levels(self, now: float) -> None:
        """The job has ended: its levels held until `now`."""
        for key in self._held:
            self._count_held(key, now)
        self._held.clear()

    def close_window(self, now: float) -> dict[str, object]:
        """The cells of the window that ends now, and begin another; empty when nothing was read in it."""
        for key in self._held.keys() & self._window.keys():
            self._count_held(key, now)
        cells = {key: self._window[key].cell(m.unit) for key, m in self._measurements.items() if key in self._window}
        for key, summary in self._window.items():
            if key in self._run:
                self._run[key].merge(summary)  # type: ignore[arg-type]
            else:
                self._run[key] = summary
        self._window = {}
        return cells

    def by_key(self) -> dict[str, dict[str, object]]:
        """What was measured over the windows closed so far."""
        return {
            key: {"unit": m.unit, "kind": m.kind.value, **self._run[key].summary(m.unit)}
            for key, m in self._measurements.items()
            if key in self._run
        }

    def so_far(self, now: float) -> dict[str, dict[str, object]]:
        """The same with the window that is open, which goes on."""
        from copy import copy, deepcopy

        present = copy(self)
        present._run, present._window, present._held = deepcopy(self._run), deepcopy(self._window), dict(self._held)
        present.close_window(now)
        return present.by_key()

    def _count_held(self, key: str, now: float) -> None:
        """Count the level that holds for the time since it was last counted."""
        if key in self._held:
            value, since = self._held[key]
            self._summary_of(key).add(value, now - since)  # type: ignore[arg-type]
            self._held[key] = (value, now)

    def _summary_of(self, key: str) -> Aggregate:
        """The summary of the present window."""
        summary = self._window.get(key)
        if summary is None:
            before = self._run.get(key)
            first = before.last if isinstance(before, CounterAggregate) else 0
            summary = self._window[key] = new_aggregate(self._measurements[key], first)
        return summary
