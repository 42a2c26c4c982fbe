"""Figures as plotly takes them: one for a run, and those that put several runs side by side.

They are plain dictionaries: nothing here needs plotly, and a page of many runs is made quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from jobmeter.report.plot.series import Curve, Heading, JobCurves, Panel
from jobmeter.times import parse_moment
from jobmeter.units import scale, text

Figure = dict[str, Any]

COLOURS = ("#2563a8", "#c2571a", "#2f855a", "#7b4bb3", "#b7342d", "#0e7c86", "#a0648c", "#6b6f1f", "#4a5568", "#d08b00")
REQUESTED = "#b7342d"
_GRID = "#e5e7eb"
_ROW = 205
_LONGEST = 40
_MOST_IN_ROW = 8
"""The most runs whose names are above a figure; the names of more are beside it, where they scroll."""
_BUTTONS = 30
"""Pixels at the top where plotly shows its buttons: the legend is below them."""


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

    def at(self, seconds: float, started: str) -> float | str:
        """The same, as JSON has it."""
        place = self.place(seconds, started)
        return place if isinstance(place, float) else place.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def clock(jobs: Sequence[JobCurves], of_day: bool = False) -> Clock:
    if of_day:
        return Clock("time (UTC)", 1.0, "", True)
    longest = max((panel.curve.times[-1] for job in jobs for panel in job.panels), default=0.0)
    divisor, symbol = scale(longest, "seconds")
    return Clock(f"time since the start ({symbol})", divisor, symbol, False)


def label(job: JobCurves) -> str:
    """What the run is called in figures: its name, as far as there is room, and the beginning of its id."""
    name = job.row["name"]
    return f"{name if len(name) <= _LONGEST else name[: _LONGEST - 1] + '…'} {job.row['id'][: job.short]}"


def unit_title(curve: Curve, symbol: str) -> str:
    """The title of the axis: `MiB`, `% (100 = one core)`, `KiB per second`."""
    named = {"percent": "% (100 = one core)", "count": "number"}.get(curve.unit, symbol)
    return f"{named} per second" if curve.rate else named


def job_figure(job: JobCurves, of_day: bool = False) -> Figure:
    """A run: its panels above one another, on one time line."""
    time = clock([job], of_day)
    data: list[Figure] = []
    layout = base_layout(_ROW * len(job.panels) + 134, time)
    # In a narrow window the legend takes three lines, and the heading of the first panel stands below it.
    layout["margin"]["t"] = 112
    layout["grid"] = {"rows": len(job.panels), "columns": 1, "ygap": 0.32}
    layout["annotations"] = []
    # One box for all panels: what was used at this moment.
    layout.update(hovermode="x unified", hoversubplots="axis")
    for number, panel in enumerate(job.panels):
        axis = "y" if number == 0 else f"y{number + 1}"
        highest = max(panel.curve.highest, panel.requested or 0.0)
        divisor, symbol = scale(highest, panel.curve.unit)
        data += _panel_traces(job, panel, axis, COLOURS[panel.number % len(COLOURS)], time, divisor)
        layout[f"yaxis{axis[1:]}"] = value_axis(unit_title(panel.curve, symbol))
        layout["annotations"].append(_heading(panel, axis))
    layout["xaxis"]["anchor"] = axis if job.panels else "y"
    return {"data": data, "layout": layout}


def overview_figure(jobs: Sequence[JobCurves], heading: Heading, of_day: bool = False) -> Figure | None:
    """One quantity of all runs in one figure; None when no run has it."""
    drawn = [(job, panel) for job in jobs if (panel := job.panel(heading.title)) is not None]
    if not drawn:
        return None
    time = clock(jobs, of_day)
    highest = max(panel.curve.highest for _, panel in drawn)
    divisor, symbol = scale(highest, drawn[0][1].curve.unit)
    data = []
    for number, (job, panel) in enumerate(drawn):
        trace = _line(panel.curve, panel.curve.peak, job, time, divisor)
        trace.update(
            name=escaped(label(job)), line={"color": COLOURS[number % len(COLOURS)], "width": 1.6, "shape": "vh"}
        )
        trace["hovertemplate"] = f"%{{text}} at %{{x}}<extra>{escaped(label(job))}</extra>"
        data.append(trace)
    layout = base_layout(440, time)
    layout["yaxis"] = value_axis(unit_title(drawn[0][1].curve, symbol))
    layout["hovermode"] = "closest"
    if len(drawn) > _MOST_IN_ROW:
        layout["legend"] = {"font": {"size": 11}, "y": 1}
    return {"data": data, "layout": layout}


def _panel_traces(job: JobCurves, panel: Panel, axis: str, colour: str, time: Clock, divisor: float) -> list[Figure]:
    curve, title = panel.curve, panel.title
    mean = _line(curve, curve.mean, job, time, divisor)
    mean.update(
        name=f"{title}, mean" if curve.is_band else title, yaxis=axis, fill="tozeroy", fillcolor=faded(colour, 0.13)
    )
    mean["line"] = {"color": colour, "width": 1.6, "shape": "vh"}
    traces = [mean]
    if curve.is_band:
        peak = _line(curve, curve.peak, job, time, divisor)
        peak.update(name=f"{title}, peak", yaxis=axis)
        peak["line"] = {"color": colour, "width": 1, "shape": "vh", "dash": "dot"}
        traces.insert(0, peak)
    if panel.requested is not None:
        ends = [time.at(0.0, job.row["started"]), time.at(curve.times[-1], job.row["started"])]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{title}, requested",
                "x": ends,
                "y": [round(panel.requested / divisor, 4)] * 2,
                "text": [text(panel.requested, curve.unit)] * 2,
                "hovertemplate": "%{text}",
                "xaxis": "x",
                "yaxis": axis,
                "line": {"color": REQUESTED, "width": 1.5, "dash": "dash"},
            }
        )
    return traces


def _line(curve: Curve, values: list[float | None], job: JobCurves, time: Clock, divisor: float) -> Figure:
    per_second = " per second" if curve.rate else ""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [time.at(seconds, job.row["started"]) for seconds in curve.times],
        "y": [None if value is None else round(value / divisor, 4) for value in values],
        "text": ["" if value is None else text(value, curve.unit) + per_second for value in values],
        "hovertemplate": "%{text}",
        "xaxis": "x",
        "connectgaps": False,
    }


def base_layout(height: int, time: Clock | None) -> Figure:
    layout: Figure = {
        "height": height,
        "margin": {"l": 70, "r": 24, "t": 88, "b": 56},
        "font": {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 13, "color": "#1f2937"},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1 - _BUTTONS / height,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": 12},
        },
        "hoverlabel": {"namelength": -1},
    }
    if time is not None:
        layout["xaxis"] = {
            "title": {"text": time.title, "font": {"size": 12}},
            "gridcolor": _GRID,
            "zeroline": False,
            "automargin": True,
        }
        layout["xaxis"].update(
            {"type": "date"} if time.of_day else {"ticksuffix": f" {time.symbol}", "rangemode": "tozero"}
        )
    return layout


def value_axis(title: str) -> Figure:
    return {
        "title": {"text": title, "font": {"size": 12}},
        "rangemode": "tozero",
        "gridcolor": _GRID,
        "zerolinecolor": "#9ca3af",
        "automargin": True,
        "exponentformat": "none",
        "separatethousands": True,
        "nticks": 6,
        "ticks": "outside",
        "tickcolor": _GRID,
    }


def _heading(panel: Panel, axis: str) -> Figure:
    """Above the panel: its subject, the measurement it is drawn from and what that is."""
    curve = panel.curve
    title = f"<b>{escaped(panel.title)}</b>" if panel.title != curve.key else ""
    source = f"<span style='color:#6b7280'>{escaped(curve.key)}: {escaped(curve.help)}</span>"
    return {
        "text": f"{title}  {source}".strip(),
        "xref": "paper",
        "x": 0,
        "xanchor": "left",
        "yref": f"{axis} domain",
        "y": 1,
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12},
    }


def faded(colour: str, share: float) -> str:
    """The colour with this opacity, as every version of plotly reads it."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


def escaped(words: str) -> str:
    """The text with HTML escaped: plotly interprets some of it."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
