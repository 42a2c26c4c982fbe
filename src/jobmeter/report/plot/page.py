"""The page of plots: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.report.page.document import document, tiles
from jobmeter.report.plot.bars import bars_html
from jobmeter.report.plot.curve_data import overviews, run_data, sources
from jobmeter.report.plot.labels import check_started, label
from jobmeter.report.plot.series import JobCurves
from jobmeter.units import text

_MOST_BARS = 100

_Column = tuple[str, str, str | None]
"""Heading, field, and unit; None: text."""
_COLUMNS: tuple[_Column, ...] = (
    ("status", "status", None),
    ("wall time", "wall_seconds", "seconds"),
    *((figure.heading, figure.name, figure.unit) for figure in HEADLINE),
)
_OVERVIEW = "The peak of each window. Click a name in the legend to hide a run, twice to see it alone."


def page(jobs: Sequence[JobCurves], of_day: bool = False) -> str:
    """The whole file: summary, overviews where there are several runs, then every run."""
    if of_day:
        check_started(jobs)
    drawn = [job for job in jobs if job.panels]
    title = label(jobs[0]) if len(jobs) == 1 else f"{len(jobs)} runs"
    sections = [f"<h1>{escape(title)}</h1>", _summary(jobs)]
    if len(jobs) > 1:
        sections += [
            f"<section><h2>{escape(name)} of all runs</h2><p>{_OVERVIEW}</p>"
            f'<div data-overview="{escape(name)}"></div></section>'
            for name in overviews(jobs)
        ]
    sections += [_run_section(job) for job in drawn]
    return document(title, sections, {"runs": [run_data(job) for job in drawn], "clock": of_day})


def _run_section(job: JobCurves) -> str:
    run_id = escape(job.row["id"])
    return (
        f'<section id="{run_id}"><h2>{escape(label(job))}</h2><p>{escape(_run_line(job))}</p>'
        f'<div data-run="{run_id}"></div>{sources_html(job)}</section>'
    )


def sources_html(job: JobCurves) -> str:
    """Below the curves: what each is drawn from."""
    lines = []
    for title, key, words in sources(job):
        lines.append(f"<b>{escape(title)}</b>: {escape(words)}" + (f" ({escape(key)})" if title != key else ""))
    lines += [f"<b>Peak</b>: {escape(panel.mark.words)}" for panel in job.panels if panel.mark is not None]
    return f'<p class="sources">{"<br>".join(lines)}</p>'


def _summary(jobs: Sequence[JobCurves]) -> str:
    used = [column for column in _COLUMNS if any(job.row.get(column[1]) is not None for job in jobs)]
    largest = sorted(jobs, key=lambda job: -job.row.get("memory_peak_bytes", 0))[:_MOST_BARS]
    shown = [job for job in jobs if job in largest]
    left_out = f"<p>The {_MOST_BARS} runs with most memory.</p>" if len(shown) < len(jobs) else ""
    figures = _tiles(jobs[0], used) if len(jobs) == 1 else _table(jobs, used)
    return f"<section><h2>Summary</h2>{figures}{bars_html(shown)}{left_out}</section>"


def _tiles(job: JobCurves, used: Sequence[_Column]) -> str:
    """The figures of one run."""
    return tiles([(name, _words(job.row.get(key), unit)) for name, key, unit in used if key in job.row])


def _table(jobs: Sequence[JobCurves], used: Sequence[_Column]) -> str:
    """One row per run; on a narrow screen, one card per run."""
    head = "".join(f"<th{_aligned(unit)}>{name}</th>" for name, _, unit in (("run", "", None), *used))
    rows = []
    for job in jobs:
        name = escape(label(job))
        cells = [f'<td><a href="#{escape(job.row["id"])}">{name}</a></td>' if job.panels else f"<td>{name}</td>"]
        for heading, key, unit in used:
            cells.append(f'<td{_aligned(unit)} data-label="{heading}">{escape(_words(job.row.get(key), unit))}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "".join(rows)
    return f'<div class="wide"><table class="cards"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _aligned(unit: str | None) -> str:
    return ' class="words"' if unit is None else ""


def _words(value: Any, unit: str | None) -> str:
    return "" if value is None else text(value, unit) if unit else str(value)


def _run_line(job: JobCurves) -> str:
    row = job.row
    parts = [f"run {row['id']}"]
    if started := row.get("started"):  # empty in the index if it is not known
        parts.append(f"started {started[:19].replace('T', ' ')} UTC")
    parts.append(row["status"])
    parts += [f"{key}={value}" for key, value in row.get("labels", {}).items()]
    return " · ".join(parts)
