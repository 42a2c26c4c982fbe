"""Aggregates the readings of one job: the present window, and the run so far.

Nothing here reads a source. How a reading is aggregated follows from the description of its measurement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jobmeter.collectors.contract import Readings
from jobmeter.meter.aggregate import Aggregate, CounterAggregate, combine, new_aggregate
from jobmeter.model import Gauge, Kind, Measurement, Number, Value

_AT_THE_START = 0.3
"""Seconds from the start of a job within which the first reading of a level holds for the time before it, too."""


class RunSummary:
    """Windows and the run they make up.

    A level holds from its reading to the next one, or to the end of the job. If the next one differs, the change is
    assumed in the middle between the two. A rate stands for the time since the reading before. Levels that are read
    after the job has ended do not count.
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
        self._held: dict[str, tuple[Number, float]] = {}  # level, and until when it is counted
        self._unchanged_until = started
        self._read_at: dict[str, float] = {}

    def add(self, readings: Readings, now: float, *, job_ended: bool = False) -> dict[str, Value]:
        """Add what a source read at `now`; return it, with one value per key for the whole job.

        Once the job has ended, only counters, rates and marks count.
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
            if key in self._levels:
                seconds = self._seconds_of_level(key, now, changed=key in self._held and value != self._held[key][0])
                self._held[key] = (value, now)  # type: ignore[assignment]
            else:
                seconds = now - self._read_at.get(key, self.started)
            self._read_at[key] = now
            self._summary_of(key).add(value, seconds)  # type: ignore[arg-type]
        return values

    def nothing_ran(self, now: float) -> None:
        """No process of the job ran since the last look: its levels are unchanged until `now`."""
        self._unchanged_until = now

    def end_levels(self, now: float) -> None:
        """Count the levels until `now`, when the job has ended."""
        for key in self._held:
            self._count_held(key, now)
        self._held.clear()

    def close_window(self, now: float, only: Collection[str] | None = None) -> dict[str, object]:
        """Return the cells of the window that ends now, and begin another; empty if nothing was read in it.

        With `only`, end it for these keys; for the others the window goes on.
        """
        keys = self._window.keys() if only is None else self._window.keys() & set(only)
        for key in self._held.keys() & keys:
            self._count_held(key, now)
        # In the order of the measurements, so that windows of the same keys have the same columns.
        return {key: self._close(key) for key in self._measurements if key in keys}

    def repeat(self, keys: Iterable[str]) -> None:
        """Add these keys to the window, unchanged: no process ran, so levels are the same and counters did not grow."""
        for key in keys:
            if key in self._held or isinstance(self._run.get(key), CounterAggregate):
                self._summary_of(key)

    def _close(self, key: str) -> object:
        """Add the window's summary of a key to that of the run; returns its cell."""
        summary = self._window.pop(key)
        if key in self._run:
            self._run[key].merge(summary)  # type: ignore[arg-type]
        else:
            self._run[key] = summary
        return summary.cell(self._measurements[key].unit)

    def by_key(self) -> dict[str, dict[str, object]]:
        """What was measured over the windows closed so far."""
        return {
            key: {"unit": m.unit, "kind": m.kind.value, **self._run[key].summary(m.unit)}
            for key, m in self._measurements.items()
            if key in self._run
        }

    def so_far(self, now: float) -> dict[str, dict[str, object]]:
        """The same including the open window, which goes on."""
        from copy import copy, deepcopy

        present = copy(self)
        present._run, present._window, present._held = deepcopy(self._run), deepcopy(self._window), dict(self._held)
        present.close_window(now)
        return present.by_key()

    def _seconds_of_level(self, key: str, now: float, *, changed: bool) -> float:
        """Seconds before `now` in which the level read at `now` already held; counts the previous level up to then.

        The time of a change is unknown. The middle is right on average: a later time would make every mean lag behind.
        """
        if key not in self._held:
            elapsed = now - self.started
            return elapsed if elapsed < _AT_THE_START else 0.0
        counted = self._held[key][1]  # later than its last reading if a window ended since
        last_reading = max(self._read_at[key], self._unchanged_until)
        since = max((last_reading + now) / 2, counted) if changed else now
        self._count_held(key, since)
        return now - since

    def _count_held(self, key: str, now: float) -> None:
        """Count the level that holds for the time since it was last counted."""
        if key in self._held:
            value, since = self._held[key]
            self._summary_of(key).add(value, now - since)  # type: ignore[arg-type]
            self._held[key] = (value, now)

    def _summary_of(self, key: str) -> Aggregate:
        """The aggregate of a key in the present window."""
        summary = self._window.get(key)
        if summary is None:
            before = self._run.get(key)
            first = before.last if isinstance(before, CounterAggregate) else 0
            summary = self._window[key] = new_aggregate(self._measurements[key], first)
        return summary
