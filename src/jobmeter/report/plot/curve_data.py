"""The data of curves in a page: small, so that a page of a thousand runs still opens at once.

`charts.js` draws them. Times are seconds since the start; values are in multiples of `by` units, with five digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Any

from jobmeter.report.plot.labels import label
from jobmeter.report.plot.series import Curve, JobCurves, Panel
from jobmeter.times import parse_moment
from jobmeter.units import scale

_DIGITS = 5


def run_data(job: JobCurves) -> dict[str, Any]:
    """The data of one run, for `page.runs`."""
    started = job.row.get("started")
    data: dict[str, Any] = {"id": job.row["id"], "label": label(job), "panels": list(map(_panel, job.panels))}
    if started:
        data["start"] = round(parse_moment(started).timestamp(), 3)
    return data


def _panel(panel: Panel) -> dict[str, Any]:
    curve = _without_repeats(panel.curve)
    by, _ = scale(curve.highest, curve.unit) if curve.unit == "bytes" else (1.0, "")
    end = curve.times[-1]
    decimals = max(_DIGITS - 1 - floor(log10(end)), 0) if end > 0 else 0
    data: dict[str, Any] = {
        "title": panel.title,
        "unit": curve.unit,
        "colour": panel.number,
        "by": by,
        "t": [_short(round(seconds, decimals)) for seconds in curve.times],
        "mean": [_rounded(value, by) for value in curve.mean],
    }
    if curve.is_band:
        data["peak"] = [_rounded(value, by) for value in curve.peak]
    if curve.rate:
        data["rate"] = True
    if panel.requested is not None:
        data["requested"] = panel.requested
    if panel.mark is not None:
        data["mark"] = [_short(round(panel.mark.seconds, decimals)), panel.mark.value, panel.mark.words]
    return data


def _without_repeats(curve: Curve) -> Curve:
    """The curve without points between two others of the same value: drawn as steps, it looks the same."""
    points = list(zip(curve.mean, curve.peak))
    last = len(points) - 1
    indexes = [n for n in range(len(points)) if n in (0, last) or not points[n - 1] == points[n] == points[n + 1]]
    return curve._replace(
        times=[curve.times[n] for n in indexes],
        mean=[curve.mean[n] for n in indexes],
        peak=[curve.peak[n] for n in indexes],
    )


def _rounded(value: float | None, by: float) -> float | None:
    if not value:
        return value
    value /= by
    return _short(round(value, max(_DIGITS - 1 - floor(log10(abs(value))), 0)))


def _short(value: float) -> float:
    """A whole number without its `.0`."""
    return int(value) if value == int(value) else value


def sources(job: JobCurves) -> list[tuple[str, str, str]]:
    """For each panel: its title, the key of the measurement it is drawn from, and the help of that measurement."""
    return [(panel.title, panel.curve.key, panel.curve.help) for panel in job.panels]


def overviews(jobs: Sequence[JobCurves]) -> list[str]:
    """The titles of panels that several runs have: each makes a figure in which they are compared."""
    counts: dict[str, int] = {}
    for job in jobs:
        for panel in job.panels:
            counts[panel.title] = counts.get(panel.title, 0) + 1
    return [title for title, count in counts.items() if count > 1]
