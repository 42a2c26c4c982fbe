"""The report of a workflow: tiles, timeline, load, graph, and a table of jobs that shows their curves on demand."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from jobmeter.report.graph.drawing import Box
from jobmeter.report.graph.page import graph_html
from jobmeter.report.page.document import document, tiles
from jobmeter.report.plot.curve_data import run_data, sources
from jobmeter.report.plot.series import JobCurves
from jobmeter.report.workflow.job_entry import Load, WorkflowReport
from jobmeter.report.workflow.job_table import table_html
from jobmeter.report.workflow.timeline import timeline_html

_MOST_BOXES = 300
"""Most boxes of a graph on this page; `workflow graph --html` draws larger graphs."""
_LOAD = "the workflow"
_JOBS = (
    "What each job used of what it requested; CPU and memory are peaks. Click a heading to sort, a job to see its "
    "curves, its command and its attempts. ▲ used more than it requested."
)
_TOGETHER = (
    "What the jobs that ran at one time requested and used together: of CPU the mean of each job, of memory its peak."
)
_IN_SIGHT = 0.2
"""Share of the capacity that curves must reach for it to be drawn: else they would be a flat line at the bottom."""


def report_page(report: WorkflowReport, boxes: Sequence[Box], jobs: Sequence[JobCurves]) -> str:
    """The whole file; `jobs` are the runs that have curves."""
    drawn = [job for job in jobs if job.panels]
    runs = [run_data(job) for job in drawn]
    if report.loads and report.seconds > 0:
        runs.append({"id": _LOAD, "label": report.name, "panels": list(map(_load_panel, range(9), report.loads))})
    body = [
        f"<h1>{escape(report.name)}</h1><p>{escape(report.caption)}</p>",
        f"<section>{tiles(report.figures)}</section>",
        _timeline(report),
        _load(report),
        _graph(boxes),
        f"<section><h2>Jobs</h2><p>{_JOBS}</p><p>{escape(report.missing_curves)}</p>"
        f"{table_html(report.jobs, {job.row['id'] for job in drawn})}</section>",
    ]
    data: dict[str, Any] = {"runs": runs, "clock": False, "jobs": _details(report), "sources": _sources(drawn)}
    return document(report.name, body, data, styles=("dag.css", "workflow.css"), scripts=("workflow.js",))


def _timeline(report: WorkflowReport) -> str:
    zoom = '<span class="zoom"><button data-zoom="0.5">−</button><button data-zoom="2">+</button></span>'
    chain = f"<p>Critical path: {escape(report.critical)}</p>" if report.critical else ""
    return (
        f"<section><h2>Timeline {zoom}</h2>{chain}"
        '<p class="legend"><span><i class="path"></i>on the critical path</span></p>'
        f"{timeline_html(report.jobs, report.seconds)}</section>"
    )


def _load(report: WorkflowReport) -> str:
    if not report.loads or report.seconds <= 0:
        return ""
    return f'<section><h2>Load</h2><p>{_TOGETHER}</p><div data-run="{_LOAD}"></div></section>'


def _load_panel(number: int, load: Load) -> dict[str, Any]:
    times = [0.0, *load.times]
    panel: dict[str, Any] = {
        "title": load.title,
        "unit": load.unit,
        "colour": number,
        "by": 1,
        "t": [round(at, 3) for at in times],
        "mean": [round(value, 1) for value in (load.used[0], *load.used)],
        "requests": [round(value, 1) for value in (load.requested[0], *load.requested)],
        "name": "used",
    }
    if load.capacity is not None and max(*load.used, *load.requested) >= _IN_SIGHT * load.capacity:
        panel["capacity"] = load.capacity
    return panel


def _graph(boxes: Sequence[Box]) -> str:
    if len(boxes) < 2:
        return ""
    if len(boxes) > _MOST_BOXES:
        words = f"{len(boxes):,} steps: `jobmeter workflow graph --html FILE` draws them."
        return f"<section><h2>Graph</h2><p>{words}</p></section>"
    return f"<section><h2>Graph</h2>{graph_html(boxes)}</section>"


def _details(report: WorkflowReport) -> dict[int, dict[str, Any]]:
    """What is shown of a job when it is opened."""
    return {
        job.number: {
            "command": job.command,
            **({"reason": job.reason} if job.reason else {}),
            "attempts": [[each.run, each.attempt, each.ending, round(each.seconds, 3)] for each in job.attempts],
        }
        for job in report.jobs
    }


def _sources(jobs: Sequence[JobCurves]) -> list[list[str]]:
    """Every measurement that some curve is drawn from, once."""
    return [list(each) for each in dict.fromkeys(each for job in jobs for each in sources(job))]
