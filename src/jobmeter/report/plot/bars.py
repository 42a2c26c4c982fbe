"""The summary of runs: bars of peak and mean, with what was requested as a mark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from jobmeter.report.plot.labels import label
from jobmeter.report.plot.series import JobCurves
from jobmeter.units import text


class Bars(NamedTuple):
    """Peak against mean of one quantity."""

    title: str
    peak: str
    mean: str
    unit: str
    requirement: str
    times: float = 1.0


BARS = (
    Bars("CPU", "cpu_peak_percent", "cpu_mean_percent", "percent", "requirement_cpus", 100.0),
    Bars("Memory", "memory_peak_bytes", "memory_mean_bytes", "bytes", "requirement_memory_bytes"),
)

KEY = '<p class="key"><i class="mean"></i>mean <i class="peak"></i>peak <i class="mark"></i>requested</p>'
"""The legend of the bars."""


def bar_values(jobs: Sequence[JobCurves], bars: Bars) -> dict[str, list[float | None]]:
    """`peak`, `mean` and `requested` of every run, in the unit of the bars."""
    requested = [job.row.get(bars.requirement) for job in jobs]
    return {
        "peak": [job.row.get(bars.peak) for job in jobs],
        "mean": [job.row.get(bars.mean) for job in jobs],
        "requested": [None if value is None else value * bars.times for value in requested],
    }


def bars_html(jobs: Sequence[JobCurves]) -> str:
    """Two bars per run, CPU and memory, each on the scale of all runs; empty if nothing was measured or requested."""
    columns = [bar_values(jobs, bars) for bars in BARS]
    if not any(value is not None for column in columns for values in column.values() for value in values):
        return ""
    cells = ['<div class="head">run</div>', *(f'<div class="head">{bars.title}</div>' for bars in BARS)]
    for row, job in enumerate(jobs):
        cells.append(f'<div class="name" title="{escape(job.row["name"])}">{escape(label(job))}</div>')
        for bars, column in zip(BARS, columns):
            most = max((value for values in column.values() for value in values if value), default=0.0)
            values = {name: values[row] for name, values in column.items()}
            cells.append(f'<div class="bar {bars.title.lower()}">{track(values, bars.unit, most)}</div>')
    return f'{KEY}<div class="bars">{"".join(cells)}</div>'


def track(values: dict[str, float | None], unit: str, most: float) -> str:
    """The bar of one run, and its amounts in words."""
    measured = {name: value for name, value in values.items() if value is not None}
    if not measured:
        return ""
    words = ", ".join(f"{name} {text(value, unit)}" for name, value in measured.items())
    parts = []
    for name, style in (("peak", "peak"), ("mean", "mean"), ("requested", "mark")):
        if name in measured:
            share = 100 * measured[name] / most if most else 0.0
            parts.append(f'<span class="{style}" style="{"left" if style == "mark" else "width"}:{share:.2f}%"></span>')
    amount = measured.get("peak", measured.get("mean"))
    used = "" if amount is None else f"<b>{text(amount, unit)}</b>"
    requested = f" of {text(measured['requested'], unit)}" if "requested" in measured else ""
    return f'<div class="track" title="{words}">{"".join(parts)}</div><span class="amounts">{used}{requested}</span>'
