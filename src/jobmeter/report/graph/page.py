"""The page with the graph of a workflow: one HTML file that needs nothing else, not even a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from jobmeter.report.graph.drawing import LOOKS, Box, step_list, svg
from jobmeter.report.page.document import document


def graph_page(title: str, subtitle: str, boxes: Sequence[Box], commands: Sequence[str]) -> str:
    """The whole file: the drawing, then every box with its command in a table."""
    body = [
        f"<h1>{escape(title)}</h1><p>{escape(subtitle)}</p>",
        f"<section>{graph_html(boxes)}</section>",
        _table(boxes, commands),
    ]
    return document(title, body, styles=("dag.css",))


def graph_html(boxes: Sequence[Box]) -> str:
    """The drawing, with its legend; on a narrow screen a list."""
    return f'{_legend(boxes)}<div class="drawing graph">{svg(boxes)}</div>{step_list(boxes)}'


def _legend(boxes: Sequence[Box]) -> str:
    """The statuses, with their colours and how many jobs have each; empty if the workflow was not run."""
    counts: Counter[str] = Counter()
    for box in boxes:
        counts.update(box.statuses)
    entries = [
        f'<span><i class="{look}"></i>{counts[status]:,} {status}</span>'
        for status, look in LOOKS.items()
        if counts[status]
    ]
    return f'<p class="legend">{"".join(entries)}</p>' if entries else ""


def _table(boxes: Sequence[Box], commands: Sequence[str]) -> str:
    rows = [
        f'<tr><td>{escape(box.name)}</td><td class="number">{box.jobs:,}</td><td>{escape(box.requested)}</td>'
        f"<td>{escape(', '.join(box.after))}</td><td><pre>{escape(command)}</pre></td></tr>"
        for box, command in zip(boxes, commands)
    ]
    head = "".join(f"<th>{name}</th>" for name in ("job", "jobs", "requests", "waits for", "command"))
    return (
        f'<section><h2>Jobs</h2><div class="drawing"><table class="steps"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )
