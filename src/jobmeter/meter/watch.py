"""Watches one job: when its sources are read, and which listeners are notified."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Source, abilities
from jobmeter.errors import NoData
from jobmeter.light_typing import TYPE_CHECKING, Any, NamedTuple
from jobmeter.meter.run_summary import RunSummary
from jobmeter.meter.schedule import (
    SHORTEST_PEEK,
    busy_window_end,
    fine_window_end,
    next_offset,
    peek_gap,
    window_end,
)
from jobmeter.model import Measurement, Quality, Value

if TYPE_CHECKING:
    from jobmeter.record.types import DeviceEntry, PeakEntry, ThreadEntry

_READ_ANEW = 30.0
"""Seconds after which all sources are read again, even if no process of the job ran."""


class Window(NamedTuple):
    """One report interval, aggregated. `cells` has only what was measured."""

    seconds: float  # since the start of the job, at the window's end
    samples: int
    cells: dict[str, object]
    processes: list[ProcessUse]


class Sample(NamedTuple):
    """The values of one moment, for listeners that follow a job live."""

    seconds: float
    values: dict[str, Value]


def _ignore(_: Any) -> None:
    """Do nothing: for a watch without a listener."""


class Watch:
    """Reads the sources of one job: all of them when a sample is due, in between the levels alone (a peek).

    With `fine`, there are short windows too, at first every 15 ms: they have what peeks read, and lie between the
    complete windows of `window` seconds. Safe to call from any thread.
    """

    def __init__(
        self,
        sources: dict[str, Source],
        measurements: dict[str, Measurement],
        *,
        interval: float,
        window: float,
        fine: bool = False,
        on_window: Callable[[Window], None] = _ignore,
        on_sample: Callable[[Sample], None] = _ignore,
        on_peek: Callable[[Sample], None] = _ignore,
        per_process: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._summary = RunSummary(measurements, clock())
        self.samples = 0
        self.failures: dict[str, str] = {}
        self.finished = False
        self._sources = sources
        self._interval = interval
        self._window_seconds = window
        self._on_window = on_window
        self._on_sample = on_sample
        self._on_peek = on_peek
        self._per_process = per_process
        self._lock = threading.Lock()
        self._job_ended = False
        self._window_samples = 0
        self._fine = fine
        self._fine_end = fine_window_end(0.0, window) if fine else float("inf")
        self._busy_end = busy_window_end(0.0) if fine else float("inf")
        self._window_end = window_end(0.0, window, fine=fine)
        self._quiet_until: float | None = None  # up to when nothing ran; None: something ran since
        self._next_sample = self.started + next_offset(0.0, interval)
        self._regular_samples = 0
        self._first_regular = self._last_regular = 0.0
        self._abilities = {name: abilities(source) for name, source in sources.items()}
        self._reads: dict[str, Callable[[Moment], Readings]] = {name: source.read for name, source in sources.items()}
        self._peeks = {name: can.peek for name, can in self._abilities.items() if can.peek is not None}
        self._peeked: set[str] = set()  # the keys that peeks read
        every = self._abilities.values()
        self._pulses = [can.cpu_nanoseconds for can in every if can.cpu_nanoseconds is not None]
        self._idle_listeners = [can.nothing_ran for can in every if can.nothing_ran is not None]
        self._outrunners = [can.outran for can in every if can.outran is not None]
        self._next_peek = self.started + SHORTEST_PEEK if self._peeks else float("inf")
        self._pulse = self._peek_pulse = -1
        self._read_anew_at = 0.0

    @property
    def started(self) -> float:
        """The monotonic time at which the job began."""
        return self._summary.started

    @started.setter
    def started(self, monotonic: float) -> None:
        self._summary.started = monotonic

    def due(self) -> float:
        """The monotonic time at which `tick` has something to do."""
        return min(self._next_sample, self._next_peek)

    def tick(self) -> None:
        """Sample if it is time, else peek."""
        with self._lock:
            if self.finished:
                return
            now = self._clock()
            if now >= self._next_sample:
                self._sample(now)
                self._note_regular(now - self.started)
                self._next_sample = self.started + next_offset(self._clock() - self.started, self._interval)
            if now >= self._next_peek:
                ran = self._peek(now)
                now = self._clock()
                self._next_peek = now + peek_gap(now - self.started, ran=ran)

    def reached_interval(self) -> float:
        """The mean time between regular samples; the interval requested when there were too few to compute it."""
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
        """Take a sample outside the schedule, when something has happened."""
        with self._lock:
            if not self.finished:
                self._sample(self._clock())

    def sample_at_exit(self) -> None:
        """Take a sample when the main process has ended. Levels do not count: its memory is already freed."""
        with self._lock:
            if not self.finished:
                self._sample(self._clock(), levels=False)

    def end_levels(self) -> None:
        """Count the levels until now, and read them no longer: every process of the job has ended."""
        with self._lock:
            self._job_ended = True
            self._summary.end_levels(self._clock())

    def _peek(self, now: float) -> bool:
        """Read the levels; returns whether the job ran since the last look."""
        pulse = _first_answer(self._pulses)
        ran = pulse is None or pulse != self._peek_pulse or self._outran(pulse)
        self._peek_pulse = -1 if pulse is None else pulse
        if not ran:
            self._quiet_until = now
            self._summary.nothing_ran(now)
            for nothing_ran in self._idle_listeners:
                nothing_ran()
        elif not self._job_ended:
            self._close_quiet_window()
            values = self._read_all(self._peeks, Moment(now))
            self._peeked |= values.keys()
            if values:
                self._notify(self._on_peek, Sample(now - self.started, values))
            if now - self.started >= self._fine_end:
                self._close_window(self._peeked)
        return ran

    def _sample(self, now: float, *, levels: bool = True) -> None:
        pulse = _first_answer(self._pulses)
        # At times everything is read again: reclaim and swap change a process that does not run.
        quiet = pulse is not None and pulse == self._pulse and now < self._read_anew_at and not self._outran(pulse)
        if not quiet:
            self._read_anew_at = now + _READ_ANEW
            self._close_quiet_window()
        self._pulse = -1 if pulse is None else pulse
        values = self._read_all(self._reads, Moment(now, quiet), levels=levels)
        self.samples += 1
        self._window_samples += 1
        elapsed = self._clock() - self.started
        self._notify(self._on_sample, Sample(elapsed, values))
        if elapsed >= self._window_end or (elapsed >= self._busy_end and not quiet):
            self._close_window()
        elif elapsed >= self._fine_end:
            self._close_window(self._peeked or None)

    def _read_all(
        self, reads: dict[str, Callable[[Moment], Readings]], moment: Moment, *, levels: bool = True
    ) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for name, read in reads.items():
            try:
                values |= self._summary.add(read(moment), self._clock(), job_ended=self._job_ended or not levels)
            except Exception as error:  # noqa: BLE001 - a failing collector, also a plug-in, loses only its readings
                self._note_failure(name, error)
        return values

    def _close_quiet_window(self) -> None:
        """End the fine window at the time until which nothing ran: what is read from now on belongs to the next one."""
        until, self._quiet_until = self._quiet_until, None
        if until is not None and until - self.started >= self._fine_end:
            self._summary.repeat(self._peeked)
            self._close_window(self._peeked, until)

    def _close_window(self, only: set[str] | None = None, now: float | None = None) -> None:
        """Write the window that ends now; with `only`, a fine window with these keys."""
        now = self._clock() if now is None else now
        cells = self._summary.close_window(now, only)
        if not cells:
            return
        elapsed = now - self.started
        processes = self.live_processes() if self._per_process and only is None else []
        samples, self._window_samples = self._window_samples, 0
        if self._fine:
            self._fine_end = fine_window_end(elapsed, self._window_seconds)
        if only is None:
            self._window_end = window_end(elapsed, self._window_seconds, fine=self._fine)
            self._busy_end = busy_window_end(elapsed) if self._fine else self._busy_end
        self._notify(self._on_window, Window(elapsed, samples, cells, processes))

    def _notify(self, listener: Callable[[Any], None], what: Any) -> None:
        try:
            listener(what)
        except Exception as error:  # noqa: BLE001 - a listener must not stop the measuring
            self._note_failure("listener", error)

    def finish(self, ending: Ending) -> None:
        """Take the last readings and close the last window."""
        with self._lock:
            if self.finished:
                return
            self.finished = True
            self._summary.end_levels(self._clock())
            moment = Moment(self._clock())
            for name, source in self._sources.items():
                try:
                    self._summary.add(source.finish(moment, ending), self._clock(), job_ended=True)
                except Exception as error:  # noqa: BLE001 - as for every reading
                    self._note_failure(name, error)
            self._window_samples += 1
            self.samples += 1
            self._close_window()

    def close(self) -> None:
        with self._lock:
            self.finished = True
            for source in self._sources.values():
                source.close()

    def summary(self) -> dict[str, dict[str, object]]:
        """What was measured over the run, by key; until now if the job still runs."""
        with self._lock:
            return self._summary.by_key() if self.finished else self._summary.so_far(self._clock())

    def incomplete(self) -> set[str]:
        """Keys that a source could not read when it mattered: their figures are "at least"."""
        return {key for can in self._abilities.values() if can.incomplete is not None for key in can.incomplete()}

    def qualities(self) -> dict[str, Quality]:
        """The quality of keys, where it differs from that of their description."""
        every = (can.qualities() for can in self._abilities.values() if can.qualities is not None)
        return {key: quality for qualities in every for key, quality in qualities.items()}

    def processes(self) -> list[ProcessUse]:
        return next((list(can.processes()) for can in self._abilities.values() if can.processes is not None), [])

    def threads(self) -> list[ThreadEntry]:
        """The busiest threads, where they are measured."""
        return next((can.threads() for can in self._abilities.values() if can.threads is not None), [])

    def peaks(self) -> list[PeakEntry]:
        """The peaks of memory, and which processes held it."""
        every = (can.peaks(self.started) for can in self._abilities.values() if can.peaks is not None)
        return [entry for entries in every for entry in entries]

    def devices(self) -> list[DeviceEntry]:
        """The devices that the job used besides CPUs and memory: GPUs."""
        every = (can.devices() for can in self._abilities.values() if can.devices is not None)
        return [entry for entries in every for entry in entries]

    def live_processes(self) -> list[ProcessUse]:
        return next((list(can.live()) for can in self._abilities.values() if can.live is not None), [])

    def _outran(self, pulse: int) -> bool:
        """Whether a source measured more CPU time than the pulse: perf does not count a setuid program."""
        for outran in self._outrunners:
            try:
                if outran(pulse):
                    return True
            except Exception:  # noqa: BLE001 - reading the source then reports what is wrong with it
                return True
        return False

    def _note_failure(self, name: str, error: Exception) -> None:
        expected = isinstance(error, (OSError, ValueError, NoData))
        self.failures[name] = str(error) if expected else f"{type(error).__name__}: {error}"


def _first_answer(questions: list[Callable[[], int | None]]) -> int | None:
    for question in questions:
        try:
            answer = question()
        except (OSError, ValueError):
            continue
        if answer is not None:
            return answer
    return None
