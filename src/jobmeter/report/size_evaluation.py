"""A history that was replayed with other requests, in words and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from jobmeter.analyse.size.evaluation import ADVICE, TODAY, Evaluation, Result
from jobmeter.analyse.size.replay import Step
from jobmeter.report.page.document import document
from jobmeter.report.table_layout import Column
from jobmeter.units import text

COLUMNS = (
    Column("requests", essential=True),
    Column("gb_hours_wasted", "count", essential=True),
    Column("failed", "count", essential=True),
    Column("core_hours_wasted", "count"),
    Column("hours_wasted", "count"),
    Column("timed_out", "count"),
)
_MOST_JOBS, _MOST_RUNS = 10, 500
_WIDTH, _HEIGHT = 900.0, 220.0
_COLOURS = {"request": "#c0392b", "advice": "#2471a3", "need": "#7f8c8d"}


def cells(result: Result, runs: int) -> list[str]:
    """A line of the table."""
    return [
        result.method,
        _number(result.gb_hours_wasted),
        _failures(result.failed, runs, result.gb_hours_wasted),
        _number(result.core_hours_wasted),
        _number(result.hours_wasted),
        _failures(result.timed_out, runs, result.hours_wasted),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g}"


def _failures(count: int, runs: int, wasted: float | None) -> str:
    return "-" if wasted is None else f"{count:,} ({100 * count / runs:.2g} %)"


def summary(evaluation: Evaluation) -> str:
    """How many runs, and what the advice would have saved."""
    runs = f"{evaluation.runs:,} runs of {evaluation.jobs:,} jobs, in their order, each by the runs before it"
    by_method = {result.method: result.gb_hours_wasted for result in evaluation.results}
    today, advice = by_method[TODAY], by_method[ADVICE]
    if not today or advice is None:
        return runs
    return f"{runs}; the advice wastes {100 * advice / today:.2g} % of the memory that today's requests do"


def evaluation_page(evaluation: Evaluation) -> str:
    """A page with a picture of each of the jobs that request most: request, advice and need, run by run."""
    sections = ["<h1>Requests, advice and needs</h1>", f"<p>{escape(summary(evaluation))}</p>"]
    advised: dict[str, list[Step]] = {}
    for step in evaluation.steps.get(ADVICE, ()):
        advised.setdefault(step.task.job, []).append(step)
    order = sorted(advised, key=lambda job: -sum(_held(step) for step in advised[job]))
    for job in order[:_MOST_JOBS]:
        sections.append(f"<section><h2>{escape(job)}</h2>{_picture(advised[job][-_MOST_RUNS:])}</section>")
    return document("size --evaluate", sections)


def _held(step: Step) -> float:
    return (step.task.need.requested or step.task.need.amount) * step.task.need.seconds


def _picture(steps: Sequence[Step]) -> str:
    needs = [step.task.need for step in steps]
    series: dict[str, Sequence[float | None]] = {
        "request": [need.requested for need in needs],
        "advice": [None if step.request == float("inf") else step.request for step in steps],
        "need": [need.amount for need in needs],
    }
    top = max(value for values in series.values() for value in values if value is not None)
    lines = "".join(_line(name, values, top) for name, values in series.items())
    legend = ", ".join(f'<b style="color:{_COLOURS[name]}">{name}</b>' for name in series)
    return (
        f"<p>{legend}; the top is {escape(text(top, 'bytes'))}, {len(steps):,} runs from left to right.</p>"
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="100%" role="img" aria-label="request, advice and need">'
        f"{lines}</svg>"
    )


def _line(name: str, values: Sequence[float | None], top: float) -> str:
    across = _WIDTH / max(len(values) - 1, 1)
    points = " ".join(
        f"{index * across:.1f},{_HEIGHT * (1 - value / top):.1f}"
        for index, value in enumerate(values)
        if value is not None
    )
    return f'<polyline fill="none" stroke="{_COLOURS[name]}" stroke-width="1.5" points="{points}"/>' if points else ""
