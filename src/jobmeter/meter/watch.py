"""One job under the meter: its sources, its present window, its summary so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Source
from jobmeter.errors import NoData
from jobmeter.meter.aggregate import CounterSummary, Summary, combine, new_summary
from jobmeter.meter.schedule import FIRST_WINDOW, Peek, next_offset
from jobmeter.model import Kind, Measurement, Value

_STIRRED = 64
"""Page faults between two samples that make a sample worth taking: 256 KiB, or 128 MiB of huge pages."""
_READ_ANEW = 30.0
"""Seconds after which a job is looked at even though nothing of it ran."""
_EXTRA_SHARE = 0.02
"""Share of the time that samples outside the schedule may take."""


class Window(NamedTuple):
    """One report interval, aggregated. `cells` has only what was measured."""

    seconds: float  # since the start of the job, at the window's end
    samples: int
    cells: dict[str, object]
    processes: list[ProcessUse]


class Sample(NamedTuple):
    """The values of one moment, for those who watch a job live."""

    seconds: float
    values: dict[str, Value]


class Watch:
    """Reads the sources of one job and adds up what they say. Safe to call from any thread."""

    def __init__(
        self,
        sources: dict[str, Source],
        measurements: dict[str, Measurement],
        *,
        interval: float,
        window: float,
        on_window: Callable[[Window], None] = lambda window: None,
        on_sample: Callable[[Sample], None] = lambda sample: None,
        per_process: bool = False,
    ) -> None:
        self.started = time.monotonic()
        self.samples = 0
        self.sampling_seconds = 0.0
        self.failures: dict[str, str] = {}
        self._sources = sources
        self._measurements = measurements
        self._interval = interval
        self._window_seconds = window
        self._on_window = on_window
        self._on_sample = on_sample
        self._per_process = per_process
        self._lock = threading.Lock()
        self._run: dict[str, Summary] = {}
        self._window: dict[str, Summary] = {}
        self._window_samples = 0
        self._window_end = next_offset(0.0, window, first=FIRST_WINDOW)
        self._read_at: dict[str, float] = {}
        self._next_sample = self.started + next_offset(0.0, interval)
        self._regular_samples = 0
        self._first_regular = self._last_regular = 0.0
        self._peek = Peek()
        self._next_peek = self.started + self._peek.gap
        self._extra_seconds = self._last_cost = 0.0
        self._pulse = -1
        self._read_anew_at = 0.0
        self._faults = 0
        self.finished = False

    def due(self) -> float:
        """The monotonic time at which `tick` has something to do."""
        return min(self._next_sample, self._next_peek)

    def tick(self, now: float) -> None:
        """Sample if it is time, or if the job's memory grew since the last sample."""
        with self._lock:
            if self.finished:
                return
            if now >= self._next_sample:
                self._sample(now)
                self._note_regular(now - self.started)
                self._next_sample = self.started + next_offset(time.monotonic() - self.started, self._interval)
            elif self._memory_stirs() and self._extra_seconds + self._last_cost < _EXTRA_SHARE * (now - self.started):
                before = self.sampling_seconds
                self._sample(now)
                self._extra_seconds += self.sampling_seconds - before
            self._next_peek = time.monotonic() + self._peek.gap

    def reached_interval(self) -> float:
        """The mean time between regular samples; the interval asked for when there were too few to tell."""
        if self._regular_samples < 2:
            return self._interval
        return (self._last_regular - self._first_regular) / (self._regular_samples - 1)

    def _note_regular(self, elapsed: float) -> None:
        if elapsed >= self._interval:
            self._regular_samples += 1
            self._last_regular = elapsed
            if self._regular_samples == 1:
                self._first_regular = elapsed

    def sample_now(self) -> None:
        """A sample outside the schedule: when something is known to have happened."""
        with self._lock:
            if not self.finished:
                self._sample(time.monotonic())

    def _memory_stirs(self) -> bool:
        faults = self._page_faults()
        if faults is None:
            self._peek.gap = Peek.LONGEST
            return False
        grown = faults - self._faults
        self._peek.seen(faults=grown > 0)
        return grown >= _STIRRED

    def _sample(self, now: float) -> None:
        began = time.monotonic()
        pulse = self._cpu_nanoseconds()
        # At times everything is read anew: reclaim and swap change a process that does not run.
        quiet = pulse is not None and pulse == self._pulse and began < self._read_anew_at and not self._outran(pulse)
        if not quiet:
            self._read_anew_at = began + _READ_ANEW
        self._pulse = -1 if pulse is None else pulse
        self._faults = self._page_faults() or 0
        moment = Moment(now, quiet)
        values: dict[str, Value] = {}
        for name, source in self._sources.items():
            try:
                self._take(source.read(moment), values)
            except Exception as error:  # noqa: BLE001 - a collector that fails costs its own readings, whoever wrote it
                self._note_failure(name, error)
        self.samples += 1
        self._window_samples += 1
        elapsed = time.monotonic() - self.started
        self._last_cost = time.monotonic() - began
        self.sampling_seconds += self._last_cost
        self._tell(self._on_sample, Sample(elapsed, values))
        if elapsed >= self._window_end:
            self._close_window(elapsed)

    def _take(self, readings: Readings, values: dict[str, Value]) -> None:
        now = time.monotonic()
        for key, reading in readings.items():
            measurement = self._measurements.get(key)
            if measurement is None:
                continue
            value = combine(measurement, reading) if isinstance(reading, list) else reading
            if value is None:
                continue
            values[key] = value
            summary = self._window.get(key)
            if summary is None:
                summary = self._window[key] = self._open_summary(key, measurement.kind)
            summary.add(value, now - self._read_at.get(key, self.started))  # type: ignore[arg-type]
            self._read_at[key] = now

    def _open_summary(self, key: str, kind: Kind) -> Summary:
        before = self._run.get(key)
        return new_summary(kind, before.last if isinstance(before, CounterSummary) else 0)

    def _close_window(self, elapsed: float) -> None:
        if not self._window:
            return
        cells = {key: self._window[key].cell(m.unit) for key, m in self._measurements.items() if key in self._window}
        processes = self.live_processes() if self._per_process else []
        for key, summary in self._window.items():
            if key in self._run:
                self._run[key].merge(summary)  # type: ignore[arg-type]
            else:
                self._run[key] = summary
        samples, self._window, self._window_samples = self._window_samples, {}, 0
        self._window_end = next_offset(elapsed, self._window_seconds, first=FIRST_WINDOW)
        self._tell(self._on_window, Window(elapsed, samples, cells, processes))

    def _tell(self, listener: Callable[[Any], None], what: Any) -> None:
        try:
            listener(what)
        except Exception as error:  # noqa: BLE001 - whoever listens must not stop the measuring
            self._note_failure("listener", error)

    def finish(self, ending: Ending) -> None:
        """Take the last readings and close the last window."""
        with self._lock:
            if self.finished:
                return
            self.finished = True
            moment = Moment(time.monotonic())
            for name, source in self._sources.items():
                try:
                    self._take(source.finish(moment, ending), {})
                except Exception as error:  # noqa: BLE001 - as for every reading
                    self._note_failure(name, error)
            self._window_samples += 1
            self.samples += 1
            self._close_window(time.monotonic() - self.started)

    def close(self) -> None:
        with self._lock:
            self.finished = True
            for source in self._sources.values():
                source.close()

    def summary(self) -> dict[str, dict[str, object]]:
        """What was measured over the run, by key."""
        return {
            key: {"unit": m.unit, "kind": m.kind.value, **self._run[key].summary(m.unit)}
            for key, m in self._measurements.items()
            if key in self._run
        }

    def incomplete(self) -> set[str]:
        """Keys that some source could not read when it mattered: they are at least what they say."""
        keys: set[str] = set()
        for source in self._sources.values():
            if hasattr(source, "incomplete"):
                keys |= source.incomplete()
        return keys

    def processes(self) -> list[ProcessUse]:
        for source in self._sources.values():
            if hasattr(source, "processes"):
                return list(source.processes())
        return []

    def live_processes(self) -> list[ProcessUse]:
        for source in self._sources.values():
            if hasattr(source, "live"):
                return list(source.live())
        return []

    def _cpu_nanoseconds(self) -> int | None:
        return self._first_known("cpu_nanoseconds")

    def _page_faults(self) -> int | None:
        return self._first_known("page_faults")

    def _outran(self, pulse: int) -> bool:
        """Whether some source saw more CPU used than the pulse tells: a setuid program leaves perf behind."""
        for source in self._sources.values():
            try:
                if hasattr(source, "outran") and source.outran(pulse):
                    return True
            except Exception:  # noqa: BLE001 - reading it anew tells what is wrong with it, whoever wrote it
                return True
        return False

    def _first_known(self, question: str) -> int | None:
        for source in self._sources.values():
            try:
                answer: int | None = getattr(source, question)() if hasattr(source, question) else None
            except OSError:
                continue
            if answer is not None:
                return answer
        return None

    def _note_failure(self, name: str, error: Exception) -> None:
        expected = isinstance(error, (OSError, ValueError, NoData))
        self.failures[name] = str(error) if expected else f"{type(error).__name__}: {error}"
