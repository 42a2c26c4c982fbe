"""The curves of a run: which measurements to draw, and their values over time, from its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from math import inf
from typing import Any, NamedTuple

from jobmeter.analyse.headline import CPU_PERCENT, CPU_SECONDS, PROCESSES
from jobmeter.analyse.headline_memory import MEMORY_MEAN
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.analyse.thinning import thin
from jobmeter.analyse.timeline import level
from jobmeter.errors import UsageError
from jobmeter.journal.reader import Journal, JournalWindow
from jobmeter.model import Kind
from jobmeter.report.peaks import job_peak, peak_text

_OFTEN = 0.5
"""Some sources are read rarely (PSS is costly): a source needs values in this share of the windows of the source that
has most, to make a curve."""
_SHORT = 3
"""A value covers the time since the value before it. More windows than this without a value are a gap."""
_SHORTEST = 0.005
"""Seconds. Over less time a counter has no rate: clock and counter are read one after the other."""


class Curve(NamedTuple):
    """One measurement over a run, as steps: a value holds from the previous time to its own."""

    key: str
    unit: str
    help: str
    rate: bool  # a counter, drawn as its growth per second
    times: list[float]  # seconds since the run began
    mean: list[float | None]  # None: a gap
    peak: list[float | None]  # equal to `mean` where only one value is known

    @property
    def highest(self) -> float:
        return max((value for value in self.peak if value is not None), default=0.0)

    @property
    def is_band(self) -> bool:
        """Whether peak and mean are two different lines."""
        return self.peak != self.mean


class Mark(NamedTuple):
    """A moment of a curve, and a text about it."""

    seconds: float
    value: float
    words: str


class Panel(NamedTuple):
    """A curve with its heading, and what was requested of it."""

    title: str
    curve: Curve
    number: int  # its index among all headings, also those without a panel
    requested: float | None = None
    mark: Mark | None = None


class JobCurves(NamedTuple):
    """One run, ready to be drawn."""

    row: StoredRun  # the run: identity and headline figures
    panels: list[Panel]
    short: int = 4  # letters of its id that distinguish it from the others

    def panel(self, title: str) -> Panel | None:
        return next((panel for panel in self.panels if panel.title == title), None)


class Heading(NamedTuple):
    title: str
    keys: tuple[str, ...]  # the first that was measured is drawn, as for the headline figures
    requirement: str | None = None
    times: float = 1.0  # factor from the unit of the requirement to that of the curve


# rusage reports everything at the end: as a rate it would be a peak that never was.
_CPU_COUNTERS = tuple(key for key in CPU_SECONDS if not key.startswith("rusage_"))
CPU = Heading("CPU", (*CPU_PERCENT, *_CPU_COUNTERS), "requirement_cpus", 100.0)
MEMORY = Heading("Memory", MEMORY_MEAN, "requirement_memory_bytes")
STANDARD = (CPU, MEMORY, Heading("Processes", PROCESSES))


def distinguishing_length(ids: Sequence[str]) -> int:
    """How many letters of their ids distinguish runs: four, or as many more as needed."""
    longest = max(map(len, ids), default=0)
    return next((n for n in range(4, longest) if len({run_id[:n] for run_id in ids}) == len(ids)), longest)


def job_curves(row: StoredRun, journal: Journal, keys: Sequence[str] = (), most: int = 2000) -> JobCurves:
    """The standard panels of a run, or those of the measurements named; each of about `most` points."""
    headings = [Heading(key, (key,)) for key in keys] or STANDARD
    described = journal.header.get("measurements", {})
    panels = []
    for number, heading in enumerate(headings):
        key = _best_key(heading.keys, described, journal.windows)
        if key is None:
            continue
        requested = row.get(heading.requirement) if heading.requirement else None
        curve = _curve(key, described[key], journal.windows)
        if curve.unit == "percent":
            curve = _possible(curve, 100.0 * (journal.header.get("host", {}).get("cpus") or inf))
        curve = thinned(curve, most)
        if curve.times:
            limit = None if requested is None else requested * heading.times
            panels.append(Panel(heading.title, curve, number, limit, _mark(heading, journal)))
    return JobCurves(row, panels)


def _mark(heading: Heading, journal: Journal) -> Mark | None:
    """For memory: its peak, with the processes that held it; None for other headings."""
    peak = job_peak(journal.record) if heading is MEMORY and journal.record is not None else None
    return None if peak is None else Mark(peak["seconds"], peak["bytes"], peak_text(peak))


class Chosen(NamedTuple):
    """The measurements that patterns select, and notes on those that cannot be drawn."""

    keys: list[str]
    notes: list[str]  # lines for people


def choose_keys(patterns: Sequence[str], journals: Sequence[Journal]) -> Chosen:
    """The keys that these names and globs match in these runs, in the order of the patterns.

    Raises UsageError if no run has a match for a pattern, or if nothing can be drawn.
    """
    described: dict[str, Mapping[str, str]] = {}
    for journal in journals:
        described.update(journal.header.get("measurements", {}))
    keys: dict[str, None] = {}
    texts: list[str] = []
    for pattern in patterns:
        selected = [key for key in described if fnmatchcase(key, pattern)]
        if not selected:
            runs = f"run {journals[0].header['id']}" if len(journals) == 1 else f"any of the {len(journals)} runs"
            raise UsageError(f"{pattern}: not measured in {runs}. There are: {', '.join(described) or 'none'}.")
        drawable = [key for key in selected if described[key]["kind"] in (Kind.GAUGE.value, Kind.COUNTER.value)]
        texts += [key for key in selected if key not in drawable]
        keys.update(dict.fromkeys(drawable))
    notes = [f"{', '.join(dict.fromkeys(texts))}: not drawn: a text makes no curve"] if texts else []
    if not keys:
        raise UsageError(*notes)
    return Chosen(list(keys), notes)


def undrawn(keys: Sequence[str], jobs: Sequence[JobCurves]) -> list[str]:
    """A line for each key that some runs have no curve of."""
    lines = []
    for key in keys:
        without = [job.row["id"] for job in jobs if job.panel(key) is None]
        if without:
            more = f" and {len(without) - 5} more" if len(without) > 5 else ""
            lines.append(f"{key}: no values over time in {', '.join(without[:5])}{more}")
    return lines


def thinned(curve: Curve, most: int) -> Curve:
    """The curve reduced to about `most` points, with every peak."""
    indices = thin(curve.mean, curve.peak, most)
    if len(indices) == len(curve.times):
        return curve
    return curve._replace(
        times=[curve.times[index] for index in indices],
        mean=[curve.mean[index] for index in indices],
        peak=[curve.peak[index] for index in indices],
    )


def _best_key(keys: Sequence[str], described: dict[str, Any], windows: list[JournalWindow]) -> str | None:
    filled = {key: sum(key in window.cells for window in windows) for key in keys if key in described}
    enough = _OFTEN * max(filled.values(), default=0)
    drawable = [key for key, count in filled.items() if count and count >= enough]
    # A source that was stopped before the end (perf may be) is replaced by one that was not.
    last = {key: next(n for n, window in enumerate(reversed(windows)) if key in window.cells) for key in drawable}
    to_the_end = [key for key in drawable if last[key] <= min(last.values()) + _SHORT]
    return next(iter(to_the_end), None)


def _curve(key: str, described: dict[str, str], windows: list[JournalWindow]) -> Curve:
    rate, unit = described["kind"] == Kind.COUNTER.value, described["unit"]
    # Seconds in a second are a share: 100 % is one core, or one device, all the time.
    share = rate and unit == "seconds"
    unit, times = ("percent", 100.0) if share else (unit, 1.0)
    curve = Curve(key, unit, described.get("help", ""), rate and not share, [], [], [])
    # Fine windows have only the keys that are read often: no other key counts as missing there.
    whole = max((len(window.cells) for window in windows), default=0) / 2
    before = covered = 0.0  # the ends of the window before, and of the last one that had a value
    missing = 0
    grown = 0.0  # of a counter, in windows that are too short for a rate
    for window in windows:
        cell = window.cells.get(key)
        if rate and cell is not None:
            lasted, grown = window.seconds - covered, grown + cell
            too_short = lasted <= 0 or (covered > 0 and lasted < _SHORTEST)
            cell = None if too_short else times * grown / lasted
            grown = grown if too_short else 0.0
        if cell is None:
            missing += not 0 < len(window.cells) < whole
        else:
            if missing > _SHORT:
                _add(curve, before, None, None)
                covered = before
            peak, mean = level(cell)
            if not curve.times or missing > _SHORT:
                _add(curve, covered, mean, peak)
            _add(curve, window.seconds, mean, peak)
            covered, missing = window.seconds, 0
        before = window.seconds
    return curve


def _possible(curve: Curve, most: float) -> Curve:
    """The curve without impossible rates, such as more CPUs than exist: each is spread over the steps before it.

    The kernel adds to a counter of CPU time when it next looks at the process: what one reading missed, the next has.
    """
    points: list[tuple[float, float | None, float | None]] = []
    for end, mean, peak in zip(curve.times, curve.mean, curve.peak):
        while mean is not None and mean > most and len(points) > 1 and points[-1][1] is not None:
            (middle, before, _), start = points.pop(), points[-1][0]
            mean = peak = (before * (middle - start) + mean * (end - middle)) / (end - start)  # type: ignore[operator]
        points.append((end, mean, peak))
    if len(points) > 1 and points[0][1] is not None:
        points[0] = (points[0][0], *points[1][1:])
    times, means, peaks = ([list(column) for column in zip(*points)]) if points else ([], [], [])
    return curve._replace(times=times, mean=means, peak=peaks)


def _add(curve: Curve, seconds: float, mean: float | None, peak: float | None) -> None:
    curve.times.append(seconds)
    curve.mean.append(mean)
    curve.peak.append(peak)
