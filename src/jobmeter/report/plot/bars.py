"""The summary of runs: bars of peak against mean, and what was requested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.report.plot.figures import (
    COLOURS,
    REQUESTED,
    Figure,
    base_layout,
    escaped,
    faded,
    label,
    value_axis,
)
from jobmeter.report.plot.series import JobCurves
from jobmeter.units import scale, text

_BAR = 46
"""Pixels for the bars of one run."""
_ROOM = 1.18
"""The longest bar has its number behind it."""


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


def summary_figure(jobs: Sequence[JobCurves]) -> Figure:
    """Peak against mean of every run, and what it requested as a line across both."""
    names = [escaped(label(job)) for job in jobs]
    data: list[Figure] = []
    layout = base_layout(_BAR * len(jobs) + 170, None)
    layout.update(barmode="group", bargap=0.3, hovermode="closest", annotations=[])
    layout["grid"] = {"rows": 1, "columns": 2, "xgap": 0.08}
    layout["yaxis"] = {"automargin": True, "range": [len(jobs) - 0.5, -0.5], "type": "category", "ticksuffix": "  "}
    for number, bars in enumerate(BARS):
        axis = "x" if number == 0 else f"x{number + 1}"
        values = bar_values(jobs, bars)
        highest = max((value for column in values.values() for value in column if value), default=0.0)
        divisor, symbol = scale(highest, bars.unit)
        for (name, column), colour in zip(values.items(), (COLOURS[number], faded(COLOURS[number], 0.4), REQUESTED)):
            if any(value is not None for value in column):
                data.append(_bar(name, names, column, axis, colour, divisor, bars.unit, shown=number == 0))
        layout[f"xaxis{axis[1:]}"] = {
            **value_axis(f"{bars.title} ({symbol})"),
            "domain": ([0, 0.47], [0.53, 1])[number],
            "range": [0, _ROOM * highest / divisor],
        }
    return {"data": data, "layout": layout}


def bar_values(jobs: Sequence[JobCurves], bars: Bars) -> dict[str, list[float | None]]:
    """`peak`, `mean` and `requested` of every run, in the unit of the bars."""
    requested = [job.row.get(bars.requirement) for job in jobs]
    return {
        "peak": [job.row.get(bars.peak) for job in jobs],
        "mean": [job.row.get(bars.mean) for job in jobs],
        "requested": [None if value is None else value * bars.times for value in requested],
    }


def _bar(
    name: str,
    labels: list[str],
    values: list[float | None],
    axis: str,
    colour: str,
    divisor: float,
    unit: str,
    shown: bool,
) -> Figure:
    trace: Figure = {
        "name": name,
        "legendgroup": name,
        "showlegend": shown,
        "y": labels,
        "x": [None if value is None else round(value / divisor, 4) for value in values],
        "text": ["" if value is None else text(value, unit) for value in values],
        "hovertemplate": f"%{{text}}<extra>%{{y}}, {name}</extra>",
        "xaxis": axis,
    }
    if name == "requested":
        mark = {"symbol": "line-ns", "size": _BAR - 12, "line": {"width": 2.5, "color": colour}, "color": colour}
        return {**trace, "type": "scatter", "mode": "markers", "marker": mark, "cliponaxis": False}
    return {
        **trace,
        "type": "bar",
        "orientation": "h",
        "marker": {"color": colour},
        "textposition": "outside",
        "textfont": {"size": 11},
        "cliponaxis": False,
    }
