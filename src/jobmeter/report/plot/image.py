"""The plots as pictures for papers: SVG, PNG and PDF, by matplotlib.

Plotly draws in a browser, and its own export (kaleido) needs Chrome. Matplotlib needs only pip.
"""

from __future__ import annotations

import contextlib
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.font_manager import fontManager

from jobmeter.links import open_output
from jobmeter.report.plot.bars import BARS, Bars, bar_values
from jobmeter.report.plot.curve_data import overviews
from jobmeter.report.plot.labels import COLOURS, REQUESTED, Clock, clock, label, unit_title
from jobmeter.report.plot.series import Curve, JobCurves, Mark, Panel
from jobmeter.units import scale, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 7.2
"""Inches: the width of a page of text."""
_DPI = 200
_ON_WHITE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
_MOST_NAMES = 12
_MARK_WIDTH = 110
"""Characters in a line of the text of a mark."""
_FALLBACKS = (
    "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans SC", "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei", "Droid Sans Fallback", "IPAGothic", "Unifont", "Arial Unicode MS", "PingFang SC",
    "Hiragino Sans", "Apple SD Gothic Neo", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari",
)  # fmt: skip
"""Fonts of other scripts: the name of a job may be in any script."""


def _fonts() -> list[str]:
    """DejaVu Sans, which comes with matplotlib, and the fallbacks that are installed."""
    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _FALLBACKS if name in installed)]


_STYLE: Any = {
    "font.family": _fonts(),
    "text.parse_math": False,  # a dollar sign in a name does not begin a formula
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e7eb",
    "svg.fonttype": "none",  # texts stay texts, so that they can be searched and edited
    "svg.hashsalt": "jobmeter",  # the same runs give the same file
}


def pictures(jobs: Sequence[JobCurves], of_day: bool = False) -> dict[str, Figure]:
    """One picture per run, and for several runs those that compare them, by the text to add to the file name."""
    drawn = {job.row["id"] if len(jobs) > 1 else "": job_image(job, of_day) for job in jobs if job.panels}
    if len(jobs) > 1 or not drawn:
        drawn["summary" if len(jobs) > 1 else ""] = summary_image(jobs)
    if len(jobs) > 1:
        for title in overviews(jobs):
            drawn[title.lower()] = overview_image(jobs, title, of_day)
    return drawn


@matplotlib.rc_context(_STYLE)
def write_image(figure: Figure, path: str) -> None:
    """Write a figure in the format of the file extension. Raises OSError if it cannot be written."""
    metadata: dict[str, Any] = {"Date": None} if path.endswith(".svg") else {}
    with open(open_output(path), "wb") as file, _any_script():
        figure.savefig(file, format=path.rpartition(".")[2], dpi=_DPI, metadata=metadata)


@matplotlib.rc_context(_STYLE)
def write_pdf(figures: Iterable[Figure], path: str) -> None:
    """Write all figures to one file, one per page. Raises OSError if it cannot be written."""
    from matplotlib.backends.backend_pdf import PdfPages

    metadata: Any = {"CreationDate": None, "Title": "jobmeter"}  # without a date, the same runs give the same file
    with open(open_output(path), "wb") as file, _any_script(), PdfPages(file, metadata=metadata) as pages:
        for figure in figures:
            pages.savefig(figure)


@contextlib.contextmanager
def _any_script() -> Iterator[None]:
    """Suppress the warning about characters that no installed font has: they are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


@matplotlib.rc_context(_STYLE)
def job_image(job: JobCurves, of_day: bool = False) -> Figure:
    """A run: its panels above one another, on one time line."""
    count = len(job.panels)
    figure, axes = _figure(1.5 * count + 0.6, count, 1)
    time = clock([job], of_day)
    for number, (panel, axis) in enumerate(zip(job.panels, axes)):
        _draw_panel(axis, job, panel, COLOURS[panel.number % len(COLOURS)], time)
        axis.margins(x=0)
        axis.tick_params(labelbottom=number == count - 1)
    axes[-1].set_xlabel(time.title)
    figure.suptitle(label(job), x=0.01, ha="left", fontsize=9, fontweight="bold")
    return figure


@matplotlib.rc_context(_STYLE)
def overview_image(jobs: Sequence[JobCurves], title: str, of_day: bool = False) -> Figure:
    """One quantity of all runs that have it."""
    drawn = [(job, panel) for job in jobs if (panel := job.panel(title)) is not None]
    figure, (axis,) = _figure(3.2, 1, 1)
    time = clock(jobs, of_day)
    divisor, symbol = scale(max(panel.curve.highest for _, panel in drawn), drawn[0][1].curve.unit)
    for number, (job, panel) in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        times = _times(job, panel.curve, time)
        _draw_line(axis, times, _heights(panel.curve.peak, divisor), colour, name=label(job), linewidth=1.0)
    axis.set(xlabel=time.title, ylabel=unit_title(drawn[0][1].curve, symbol))
    axis.set_ylim(bottom=0)
    axis.margins(x=0)
    axis.set_title(f"{title}, peak of each window", loc="left")
    if len(drawn) <= _MOST_NAMES:
        figure.legend(frameon=False, loc="outside lower center", ncols=3)
    return figure


@matplotlib.rc_context(_STYLE)
def summary_image(jobs: Sequence[JobCurves]) -> Figure:
    """Peak against mean of every run, and what it requested as a line across both."""
    figure, axes = _figure(0.45 * len(jobs) + 1.1, 1, 2)
    for axis, bars, colour in zip(axes, BARS, COLOURS):
        _draw_bars(axis, jobs, bars, colour)
    axes[0].set_yticks(range(len(jobs)), [label(job) for job in jobs])
    axes[0].invert_yaxis()
    axes[0].tick_params(left=False)
    axes[1].tick_params(labelleft=False, left=False)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, loc="outside upper left", ncols=3)
    return figure


def _figure(height: float, rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=rows > 1, sharey=columns > 1, squeeze=False)
    return figure, [axis for row in axes for axis in row]


def _draw_panel(axis: Axes, job: JobCurves, panel: Panel, colour: str, time: Clock) -> None:
    curve = panel.curve
    times = _times(job, curve, time)
    divisor, symbol = scale(max(curve.highest, panel.requested or 0.0), curve.unit)
    mean = _heights(curve.mean, divisor)
    _draw_line(axis, times, mean, colour, name="mean", linewidth=1.2)
    axis.fill_between(times, mean, step="pre", color=colour, alpha=0.13, linewidth=0)
    if curve.is_band:
        _draw_line(axis, times, _heights(curve.peak, divisor), colour, name="peak", linewidth=0.7, linestyle=":")
    if panel.requested is not None:
        axis.axhline(panel.requested / divisor, color=REQUESTED, linewidth=1, linestyle="--", label="requested")
    if panel.mark is not None:
        _draw_mark(axis, job, panel.mark, divisor, time)
    axis.set_ylim(bottom=0)
    axis.set_ylabel(unit_title(curve, symbol))
    axis.set_title(panel.title, loc="left", fontsize=8, fontweight="bold")
    if len(axis.get_legend_handles_labels()[1]) > 1:
        axis.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.98), ncols=3, borderaxespad=0)


def _draw_mark(axis: Axes, job: JobCurves, mark: Mark, divisor: float, time: Clock) -> None:
    """Draw a point, and its text at the bottom left of the panel."""
    place: Any = time.place(mark.seconds, job.row["started"])
    axis.plot([place], [mark.value / divisor], "o", color=REQUESTED, markersize=3)
    words = "\n".join(textwrap.wrap(mark.words, _MARK_WIDTH))
    axis.text(0.01, 0.06, words, transform=axis.transAxes, fontsize=6, va="bottom", ha="left", bbox=_ON_WHITE)


def _times(job: JobCurves, curve: Curve, time: Clock) -> list[Any]:
    return [time.place(seconds, job.row["started"]) for seconds in curve.times]


def _heights(values: list[float | None], divisor: float) -> list[float]:
    return [float("nan") if value is None else value / divisor for value in values]


def _draw_line(
    axis: Axes,
    times: list[Any],
    heights: list[float],
    colour: str,
    *,
    name: str,
    linewidth: float,
    linestyle: str = "-",
) -> None:
    axis.step(times, heights, where="pre", color=colour, linewidth=linewidth, linestyle=linestyle, label=name)


def _draw_bars(axis: Axes, jobs: Sequence[JobCurves], bars: Bars, colour: str) -> None:
    values = bar_values(jobs, bars)
    divisor, symbol = scale(max((v for column in values.values() for v in column if v), default=0.0), bars.unit)
    for name, place, alpha in (("peak", -0.2, 1.0), ("mean", 0.2, 0.45)):
        measured = [(row + place, value) for row, value in enumerate(values[name]) if value is not None]
        drawn = axis.barh(
            [row for row, _ in measured],
            [value / divisor for _, value in measured],
            0.36,
            color=colour,
            alpha=alpha,
            label=name,
        )
        axis.bar_label(drawn, [text(value, bars.unit) for _, value in measured], padding=2, fontsize=7, bbox=_ON_WHITE)
    requested = [(row, value / divisor) for row, value in enumerate(values["requested"]) if value is not None]
    if requested:
        rows, places = [row for row, _ in requested], [place for _, place in requested]
        axis.vlines(places, [r - 0.45 for r in rows], [r + 0.45 for r in rows], color=REQUESTED, label="requested")
    axis.margins(x=0.18)
    axis.set_xlim(left=0)
    axis.set_xlabel(f"{bars.title} ({symbol})")
    axis.grid(visible=False, axis="y")
