"""The page of a benchmark: every run as a point, in one HTML file that needs nothing else, not even a script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from jobmeter.analyse.bench import BENCH_MEASURES, Scaling, Spread
from jobmeter.analyse.bench_result import BenchResult, VariantResult
from jobmeter.analyse.compare import ComparedFigure
from jobmeter.report.bench.text import figure_text, percent_text, range_text, remarks, summary_table
from jobmeter.report.page.document import document
from jobmeter.units import scale, text

_TITLES = {
    "wall_seconds": "Wall time",
    "cpu_seconds": "CPU time",
    "memory_peak_bytes": "Peak memory",
    "read_bytes": "Data read",
    "write_bytes": "Data written",
}
_TICKS = 4
_LEGEND = "A point is a run, the line the median, the band its 95 % interval. Red points are outliers."


def bench_page(result: BenchResult) -> str:
    """The whole file: a table, a plot of every figure, and speed-up where variants can be compared."""
    count = len(result.variants)
    title = result.variants[0].command if count == 1 else f"Benchmark of {count} variants"
    runs = max((len(variant.runs) for variant in result.variants), default=0)
    about = f"{result.id} · {runs} runs each, interleaved · {result.started[:19].replace('T', ' ')} UTC · {result.host}"
    body = [
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p>",
        _table(result),
        f"<p class='legend'>{_LEGEND}</p>",
        *(_plot(result, measure) for measure in BENCH_MEASURES if _is_worth_a_plot(result, measure)),
        _speed_ups(result),
    ]
    return document(title, body, styles=("bench.css",))


def _table(result: BenchResult) -> str:
    columns, rows = summary_table(result)
    head = "".join(f"<th>{escape(column.name)}</th>" for column in columns)
    body = "".join(_table_row(variant, row) for variant, row in zip(result.variants, rows))
    notes = [f"{variant.name}: {remark}" for variant in result.variants for remark in remarks(variant)]
    return (
        f'<section><h2>Medians</h2><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div>{''.join(f'<p>{escape(note)}</p>' for note in notes)}</section>"
    )


def _table_row(variant: VariantResult, row: Sequence[str]) -> str:
    command = "" if variant.name == variant.command else f"<code>{escape(variant.command)}</code>"
    cells = [f"{escape(row[0])}{command}", *map(escape, row[1:])]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _is_worth_a_plot(result: BenchResult, measure: ComparedFigure) -> bool:
    """Whether the figure is above 0 in any run: most programs neither read nor write."""
    return any(
        run.figures[measure.key].value
        for variant in result.variants
        for run in variant.runs
        if measure.key in run.figures
    )


def _plot(result: BenchResult, measure: ComparedFigure) -> str:
    most = max(variant.spreads()[measure.key].most for variant in result.variants if measure.key in variant.spreads())
    top = axis_end(most, measure.unit)
    rows = "".join(
        _row(variant, variant.spreads()[measure.key], measure, top)
        for variant in result.variants
        if measure.key in variant.spreads()
    )
    ticks = [(place / _TICKS, text(top * place / _TICKS, measure.unit)) for place in range(_TICKS + 1)]
    return _section(_TITLES[measure.key], "", rows, ticks)


def _row(variant: VariantResult, spread: Spread, measure: ComparedFigure, top: float) -> str:
    outliers = {run.id for run in variant.outliers(measure.key)}
    marks = []
    if spread.interval is not None:
        low, high = spread.interval
        tip = f"95 % interval {range_text(spread.interval, measure)}"
        place = f"left:{_percent(low / top)};width:{_percent((high - low) / top)}"
        marks.append(f'<i class="band" style="{place}" title="{tip}"></i>')
    median = figure_text(spread.median, measure, at_least=spread.at_least)
    marks.append(f'<i class="median" style="left:{_percent(spread.median / top)}" title="median {median}"></i>')
    for number, run in enumerate(variant.runs, start=1):
        if measure.key in run.figures:
            figure = run.figures[measure.key]
            look = "dot outlier" if run.id in outliers else "dot"
            tip = escape(f"run {number} ({run.id}): {figure_text(figure.value, measure, at_least=figure.at_least)}")
            marks.append(f'<i class="{look}" style="left:{_percent(figure.value / top)}" title="{tip}"></i>')
    return _track(variant.name, median, "".join(marks))


def _speed_ups(result: BenchResult) -> str:
    pairs = [(variant, scaling) for variant, scaling in zip(result.variants, result.scalings()) if scaling is not None]
    if not pairs:
        return ""
    ideals = [_ideal(scaling) for _, scaling in pairs]
    top = axis_end(max(*(scaling.speed_up for _, scaling in pairs), *(ideal or 0.0 for ideal in ideals)), "count")
    rows = []
    for (variant, scaling), ideal in zip(pairs, ideals):
        words = f"{scaling.speed_up:.2f}"
        marks = f'<i class="speed-up" style="width:{_percent(scaling.speed_up / top)}" title="speed-up {words}"></i>'
        if ideal is not None and scaling.efficiency is not None:
            marks += f'<i class="ideal" style="left:{_percent(ideal / top)}" title="ideal {ideal:g}"></i>'
            words += f", efficiency {percent_text(scaling.efficiency)}"
        rows.append(_track(variant.name, words, marks))
    caption = "How many times as fast, by the medians of wall time."
    if result.workers is not None:
        caption += f" The green line is the ideal for {result.workers} workers."
    ticks = [(place / _TICKS, f"{top * place / _TICKS:g}") for place in range(_TICKS + 1)]
    return _section("Speed-up", caption, "".join(rows), ticks)


def _ideal(scaling: Scaling) -> float | None:
    """The speed-up if workers did not wait for each other; None if it is not known."""
    return scaling.speed_up / scaling.efficiency if scaling.efficiency else None


def _section(title: str, caption: str, rows: str, ticks: Sequence[tuple[float, str]]) -> str:
    axis = "".join(f'<span style="left:{_percent(place)}">{escape(words)}</span>' for place, words in ticks)
    words = f"<p>{escape(caption)}</p>" if caption else ""
    return f'<section><h2>{title}</h2>{words}{rows}<div class="ticks">{axis}</div></section>'


def _track(name: str, value: str, marks: str) -> str:
    return (
        f'<div class="row"><div class="name"><span>{escape(name)}</span><span>{escape(value)}</span></div>'
        f'<div class="axis">{marks}</div></div>'
    )


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.3f}%"


def axis_end(most: float, unit: str) -> float:
    """A number at or above the largest value that is round in the unit that it is shown in."""
    if most <= 0:
        return 1.0
    divisor, _ = scale(most, unit)
    shown = most / divisor
    power = 10.0 ** math.floor(math.log10(shown))
    steps: Iterable[float] = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10)
    return divisor * power * next(step for step in steps if step * power >= shown * (1 - 1e-12))
