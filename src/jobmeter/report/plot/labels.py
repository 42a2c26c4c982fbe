"""What pages and pictures have in common: names of runs, axes and colours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from jobmeter.errors import UsageError
from jobmeter.report.plot.series import Curve, JobCurves
from jobmeter.times import parse_moment
from jobmeter.units import scale

COLOURS = ("#2563a8", "#c2571a", "#2f855a", "#7b4bb3", "#a0648c", "#0e7c86", "#6b6f1f", "#4a5568", "#d08b00", "#5566cc")
REQUESTED = "#b7342d"
_LONGEST = 40


class Clock(NamedTuple):
    """The time axis: seconds since each run began, in a unit that suits, or the time of day."""

    title: str
    divisor: float
    symbol: str
    of_day: bool

    def place(self, seconds: float, started: str) -> float | datetime:
        """Where on the axis a moment of a run lies."""
        if not self.of_day:
            return round(seconds / self.divisor, 6)
        return parse_moment(started) + timedelta(seconds=seconds)


def clock(jobs: Sequence[JobCurves], of_day: bool = False) -> Clock:
    if of_day:
        check_started(jobs)
        return Clock("time (UTC)", 1.0, "", True)
    longest = max((panel.curve.times[-1] for job in jobs for panel in job.panels), default=0.0)
    divisor, symbol = scale(longest, "seconds")
    return Clock(f"time since the start ({symbol})", divisor, symbol, False)


def check_started(jobs: Sequence[JobCurves]) -> None:
    """Raise UsageError if it is not known when a run started: it cannot be drawn by the time of day."""
    for job in jobs:
        if not job.row.get("started"):
            raise UsageError(f"--clock: it is not known when run {job.row['id']} started")


def label(job: JobCurves) -> str:
    """What the run is called in figures: its name, shortened in the middle, and the beginning of its id."""
    name = job.row["name"]
    if len(name) > _LONGEST:  # the jobs of a sweep differ at the end
        name = f"{name[: _LONGEST // 2]}…{name[-(_LONGEST // 2 - 1) :]}"
    return f"{name} {job.row['id'][: job.short]}"


def unit_title(curve: Curve, symbol: str) -> str:
    """The title of the axis: `MiB`, `% (100 = one core)`, `KiB per second`."""
    named = {"percent": "% (100 = one core)", "count": "number"}.get(curve.unit, symbol)
    return f"{named} per second" if curve.rate else named
