"""The page with the graph of a workflow: one HTML file that needs nothing else, not even a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from jobmeter import __version__
from jobmeter.report.graph.drawing import LOOKS, Box, svg

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2937; --soft: #5b6472; --paper: #f3f4f6; --card: #fff; --rule: #e5e7eb;
  --line: #9aa3b0; --good: #2f855a; --good-in: #e9f6ee; --busy: #2563a8; --busy-in: #e6f0fa; --idle: #8a93a1;
  --idle-in: #f4f5f7; --held: #a86a00; --held-in: #fdf3de; --bad: #b7342d; --bad-in: #fcebe9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --soft: #a3adbb; --paper: #14181f; --card: #1c222b;
  --rule: #323a46; --line: #6b7686; --good: #68c492; --good-in: #1b3327; --busy: #74b0ea; --busy-in: #1b2d41;
  --idle: #8a93a1; --idle-in: #252c36; --held: #e0ae55; --held-in: #382c14; --bad: #f08d86; --bad-in: #412220; } }
body { font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; color: var(--ink);
  background: var(--paper); margin: 0; }
main { padding: 24px 24px 64px; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 8px; }
p { margin: 0 0 8px; color: var(--soft); overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 16px; margin-top: 20px; }
.wide { overflow: auto; }
.legend span { margin-right: 18px; white-space: nowrap; color: var(--ink); }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; }
i.good { background: var(--good); } i.busy { background: var(--busy); } i.idle { background: var(--idle); }
i.held { background: var(--held); } i.bad { background: var(--bad); }
.dag { display: block; }
.dag .name { font-size: 14px; font-weight: 600; fill: var(--ink); }
.dag .more { font-size: 12px; fill: var(--soft); }
.dag .box { fill: var(--card); stroke: var(--line); stroke-width: 1.3; }
.dag .line { fill: none; stroke: var(--line); stroke-width: 1.4; }
.dag .tip { fill: var(--line); }
.dag .line:hover { stroke: var(--busy); stroke-width: 3; }
.dag .node:hover .box { stroke-width: 2.4; }
.dag .box.good { fill: var(--good-in); stroke: var(--good); } .dag .more.good, .dag .share.good { fill: var(--good); }
.dag .box.busy { fill: var(--busy-in); stroke: var(--busy); } .dag .more.busy, .dag .share.busy { fill: var(--busy); }
.dag .box.idle { fill: var(--idle-in); stroke: var(--idle); } .dag .share.idle { fill: var(--idle); }
.dag .box.held { fill: var(--held-in); stroke: var(--held); } .dag .more.held, .dag .share.held { fill: var(--held); }
.dag .box.bad { fill: var(--bad-in); stroke: var(--bad); } .dag .more.bad, .dag .share.bad { fill: var(--bad); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 18px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; color: var(--soft); font-size: 13px; white-space: nowrap; }
th:nth-child(2), td.number { text-align: right; min-width: 0; }
td { overflow-wrap: break-word; min-width: 8em; max-width: 42em; }
td pre { font-size: 13px; margin: 0; white-space: pre-wrap; max-height: 8em; overflow: auto; }
footer { margin-top: 20px; color: var(--soft); font-size: 13px; }
@media print { body { background: #fff; } .wide { overflow: visible; } }
"""


def graph_page(title: str, subtitle: str, boxes: Sequence[Box], commands: Sequence[str]) -> str:
    """The whole file: the drawing, then every box with its command in a table."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # No request leaves the page.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(title)} · jobmeter</title>",
            f"<style>{_STYLE}</style></head>",
            f"<body><main><h1>{escape(title)}</h1><p>{escape(subtitle)}</p>",
            f'<section>{_legend(boxes)}<div class="wide">{svg(boxes)}</div></section>',
            _table(boxes, commands),
            f"<footer>Made by jobmeter {__version__}. This page is complete in itself.</footer></main></body></html>\n",
        ]
    )


def _legend(boxes: Sequence[Box]) -> str:
    """The statuses, with their colours and how many jobs have each; empty when it was not run."""
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
        f'<section><h2>Jobs</h2><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )
