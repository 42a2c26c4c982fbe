"""The page of plots: one HTML file that needs nothing else, now and in ten years."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from jobmeter import __version__
from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.report.plot.bars import summary_figure
from jobmeter.report.plot.figures import Figure, job_figure, label, overview_figure
from jobmeter.report.plot.series import CPU, MEMORY, JobCurves
from jobmeter.units import text

_MOST_BARS = 100

_COLUMNS: tuple[tuple[str, str, str | None], ...] = (
    ("status", "status", None),
    ("wall time", "wall_seconds", "seconds"),
    *((figure.heading, figure.name, figure.unit) for figure in HEADLINE),
    ("CPUs requested", "requirement_cpus", "count"),
    ("memory requested", "requirement_memory_bytes", "bytes"),
)

_STYLE = """
body { font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; color: #1f2937; background: #f3f4f6;
       margin: 0; }
main { max-width: 1200px; margin: 0 auto; padding: 24px 16px 64px; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 4px; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid #e5e7eb; border-radius: 8px; padding: 16px; margin-top: 20px; }
p { margin: 0 0 8px; color: #4b5563; overflow-wrap: anywhere; }
.wide { overflow: auto; max-height: 420px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 14px 4px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid #f0f1f3; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
th { font-weight: 600; color: #4b5563; font-size: 13px; }
footer { margin-top: 20px; color: #6b7280; font-size: 13px; }
a { color: #2563a8; }
@media print { body { background: #fff; } .wide { max-height: none; } section { break-inside: avoid; } }
"""

# The buttons are named one by one: plotly's own choice has one that sends the figure to a server of theirs.
# A figure is drawn when it comes near the window: a page of hundreds of runs opens at once.
_SCRIPT = """
const figures = JSON.parse(document.getElementById('figures').textContent);
const draw = place => {
  const figure = figures[place.dataset.figure];
  if (!figure || place.dataset.drawn) return;
  place.dataset.drawn = 'yes';
  Plotly.newPlot(place, figure.data, figure.layout,
    {responsive: true, displaylogo: false, plotlyServerURL: '',
     modeBarButtons: [['toImage', 'zoom2d', 'pan2d', 'zoomIn2d', 'zoomOut2d', 'autoScale2d', 'resetScale2d']],
     toImageButtonOptions: {format: 'svg', filename: 'jobmeter'}});
};
const places = [...document.querySelectorAll('[data-figure]')];
for (const place of places) place.style.minHeight = figures[place.dataset.figure].layout.height + 'px';
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) { draw(entry.target); watcher.unobserve(entry.target); }
}, {rootMargin: '800px'});
for (const place of places) watcher.observe(place);
addEventListener('beforeprint', () => places.forEach(draw));
"""


def page(jobs: Sequence[JobCurves], of_day: bool = False) -> str:
    """The whole file: summary, overviews where there are several runs, then every run."""
    from plotly.offline import get_plotlyjs

    figures: dict[str, Figure] = {}
    sections = [_summary(jobs, figures)]
    if len(jobs) > 1:
        for heading, title in ((CPU, "CPU of all runs"), (MEMORY, "Memory of all runs")):
            figure = overview_figure(jobs, heading, of_day)
            if figure is not None:
                figures[heading.title] = figure
                caption = "The peak of each window. Click a name in the legend to hide a run, twice to see it alone."
                sections.append(_section(title, caption, heading.title))
    for job in jobs:
        if job.panels:
            figures[job.row["id"]] = job_figure(job, of_day)
            sections.append(_section(label(job), _run_line(job), job.row["id"], anchor=True))
    title = label(jobs[0]) if len(jobs) == 1 else f"{len(jobs)} runs"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # The page sends no request, even if a library tries to.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
            "'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:\">",
            f"<title>{html.escape(title)} · jobmeter</title>",
            f"<style>{_STYLE}</style>",
            f"<script>{get_plotlyjs()}</script></head>",
            f"<body><main><h1>{html.escape(title)}</h1>",
            *sections,
            f"<footer>Made by jobmeter {__version__}. This page is complete in itself.</footer></main>",
            f'<script type="application/json" id="figures">{_json(figures)}</script>',
            f"<script>{_SCRIPT}</script></body></html>\n",
        ]
    )


def _section(title: str, caption: str, figure: str, anchor: bool = False) -> str:
    place = f' id="{html.escape(figure)}"' if anchor else ""
    return (
        f"<section{place}><h2>{html.escape(title)}</h2><p>{html.escape(caption)}</p>"
        f'<div data-figure="{html.escape(figure)}"></div></section>'
    )


def _summary(jobs: Sequence[JobCurves], figures: dict[str, Figure]) -> str:
    used = [column for column in _COLUMNS if any(job.row.get(column[1]) is not None for job in jobs)]
    head = "".join(f"<th>{name}</th>" for name in ("run", *(name for name, _, _ in used)))
    body = "".join(f"<tr>{_row(job, used)}</tr>" for job in jobs)
    shown = sorted(jobs, key=lambda job: -job.row.get("memory_peak_bytes", 0))[:_MOST_BARS]
    chart = ""
    if any(job.row.get(key) is not None for job in jobs for key in ("cpu_peak_percent", "memory_peak_bytes")):
        drawn = [job for job in jobs if job in shown]
        figures["summary"] = summary_figure(drawn)
        left_out = f" The {_MOST_BARS} runs with most memory." if len(drawn) < len(jobs) else ""
        chart = (
            f'<div data-figure="summary"></div><p>{left_out}</p>' if left_out else '<div data-figure="summary"></div>'
        )
    return (
        "<section><h2>Summary: peak against mean</h2>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{chart}</section>'
    )


def _row(job: JobCurves, used: Sequence[tuple[str, str, str | None]]) -> str:
    cells = [f'<a href="#{html.escape(job.row["id"])}">{html.escape(label(job))}</a>']
    for _, key, unit in used:
        value = job.row.get(key)
        cells.append("" if value is None else html.escape(text(value, unit) if unit else str(value)))
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _run_line(job: JobCurves) -> str:
    row = job.row
    parts = [f"run {row['id']}", f"started {row['started'][:19].replace('T', ' ')} UTC", row["status"]]
    parts += [f"{key}={value}" for key, value in row.get("labels", {}).items()]
    return " · ".join(parts)


def _json(value: Any) -> str:
    """JSON that can stand in a script element, whatever a job is called."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")
