"""The graph of a workflow as a drawing: boxes in columns, one level each, and lines to the boxes that wait. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from jobmeter.model import Status
from jobmeter.report.graph.layout import GridCell, Layout, Route, lay_out

_WIDTH, _GAP, _ROW = 230, 84, 14
"""Pixels: of a box, between two columns, and between two boxes."""
_LINE, _FIRST, _EDGE = 17, 20, 16
"""Pixels: between two lines in a box, from its top to the first, and around the drawing."""
_LETTERS = 29
"""Characters of a name in a box: about what fits its width."""
_LETTERS_SMALL = 35
_SMALLEST = 0.7
"""Share of its size to which a drawing may be reduced: its letters can still be read."""

LOOKS = {
    Status.COMPLETED: "good",
    Status.RUNNING: "busy",
    "waiting": "idle",
    "blocked": "held",
    Status.CANCELLED: "held",
    Status.LOST: "bad",
    Status.FAILED: "bad",
    Status.OOM: "bad",
    Status.TIMEOUT: "bad",
    Status.KILLED: "bad",
}
"""Status → the CSS class it is drawn in."""
_WORST_FIRST = ("bad", "held", "busy", "idle", "good")


class Box(NamedTuple):
    """A job, or all jobs of a sweep."""

    name: str  # unique
    jobs: int
    level: int
    after: tuple[str, ...]  # the names of the boxes that it waits for
    requested: str  # its requirement, in words
    tooltip: str  # shown when the pointer is on it
    statuses: Mapping[str, int] = {}  # status → how many of its jobs have it; empty if the workflow was not run


def svg(boxes: Sequence[Box]) -> str:
    """The drawing as an SVG element. Colours come from the style of the page, by the classes in `LOOKS`."""
    names = {box.name for box in boxes}
    edges = [(before, box.name) for box in boxes for before in box.after if before in names and before != box.name]
    layout = lay_out({box.name: box.level for box in boxes}, edges)
    page = _Paper(layout, 3 if any(box.statuses for box in boxes) else 2)
    parts = [
        f'<svg class="dag" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="which job waits for which" '
        # A drawing that is a little too wide is made smaller; one that is far too wide is scrolled.
        f'style="min-width:{_SMALLEST * page.width:.0f}px" '
        f'width="{page.width:.0f}" height="{page.height:.0f}" viewBox="0 0 {page.width:.0f} {page.height:.0f}">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" class="tip"/></marker></defs>',
        *(_line(route, layout, page) for route in layout.routes),
        *(_box(box, layout.places[box.name], page) for box in boxes),
        "</svg>",
    ]
    return "\n".join(parts)


def step_list(boxes: Sequence[Box]) -> str:
    """The same in words, for a screen that is too narrow for the drawing: every box with what it waits for."""
    items = []
    for box in boxes:
        name = f"{box.name} × {box.jobs:,}" if box.jobs > 1 else box.name
        words = " · ".join(filter(None, (_in_words(box), box.requested)))
        after = f"<small>after {escape(', '.join(box.after))}</small>" if box.after else ""
        items.append(
            f'<li class="{_look(box.statuses)}"><b>{escape(name)}</b><small>{escape(words)}</small>{after}</li>'
        )
    return f'<ul class="step-list">{"".join(items)}</ul>'


class _Paper:
    """Converts places to pixels."""

    def __init__(self, layout: Layout, lines: int) -> None:
        self.box_height = lines * _LINE + 14
        self._step = self.box_height + _ROW
        self.width = layout.columns * (_WIDTH + _GAP) - _GAP + 2 * _EDGE
        self.height = max(layout.rows * self._step - _ROW + 2 * _EDGE, 1)

    def left(self, place: GridCell) -> float:
        return _EDGE + place.column * (_WIDTH + _GAP)

    def right(self, place: GridCell) -> float:
        return self.left(place) + _WIDTH

    def top(self, place: GridCell) -> float:
        return _EDGE + place.row * self._step

    def middle(self, place: GridCell) -> float:
        return self.top(place) + self.box_height / 2


def _line(route: Route, layout: Layout, page: _Paper) -> str:
    start, end = layout.places[route.before], layout.places[route.after]
    x, y = page.right(start), page.middle(start)
    path = f"M{x:.0f} {y:.1f}"
    for place in (*route.through, end):
        to_x, to_y = page.left(place), page.middle(place)
        # A line to an earlier column leaves its box on the right, too, and reaches the other box from the left.
        bend = (to_x - x) / 2 if to_x > x else _GAP
        path += f"C{x + bend:.0f} {y:.1f} {to_x - bend:.0f} {to_y:.1f} {to_x:.0f} {to_y:.1f}"
        x, y = page.right(place), to_y
        if place is not end:
            path += f"H{x:.0f}"
    words = escape(f"{route.after} waits for {route.before}")
    return f'<path class="line" d="{path}" marker-end="url(#tip)"><title>{words}</title></path>'


def _box(box: Box, place: GridCell, page: _Paper) -> str:
    x, y, height = page.left(place), page.top(place), page.box_height
    look = _look(box.statuses)
    behind = f'<rect class="box {look}" x="{x + 5:.0f}" y="{y + 5:.1f}" width="{_WIDTH}" height="{height}" rx="6"/>'
    small = [("more", box.requested)] if box.requested else []
    small += [(f"more {look}", _in_words(box))] if box.statuses else []
    lines = [f'<text class="name" x="10" y="{_FIRST}">{escape(_label(box))}</text>']
    for number, (kind, words) in enumerate(small, start=1):
        cut = escape(_cut(words, _LETTERS_SMALL))
        lines.append(f'<text class="{kind}" x="10" y="{_FIRST + number * _LINE}">{cut}</text>')
    return (
        f'<g class="node"><title>{escape(box.tooltip)}</title>{behind if box.jobs > 1 else ""}'
        # A nested <svg> cuts off text that is too long for the box, in any script.
        f'<svg x="{x:.0f}" y="{y:.1f}" width="{_WIDTH}" height="{height}">'
        f'<rect class="box {look}" x="1" y="1" width="{_WIDTH - 2}" height="{height - 2}" rx="6"/>'
        f"{''.join(lines)}{_shares(box, height)}</svg></g>"
    )


def _look(statuses: Mapping[str, int]) -> str:
    """The class of a box: that of the worst of its jobs."""
    looks = {LOOKS.get(status, "bad") for status, number in statuses.items() if number}
    return next((look for look in _WORST_FIRST if look in looks), "plain")


def _shares(box: Box, height: float) -> str:
    """Along the lower edge of a sweep: the share of its jobs in each status."""
    if box.jobs < 2 or not box.statuses:
        return ""
    parts, x, room = [], 1.0, _WIDTH - 2
    by_look = dict.fromkeys(reversed(_WORST_FIRST), 0)
    for status, number in box.statuses.items():
        by_look[LOOKS.get(status, "bad")] += number
    for look, number in by_look.items():
        if number:
            width = room * number / sum(by_look.values())
            parts.append(f'<rect class="share {look}" x="{x:.1f}" y="{height - 6}" width="{width:.1f}" height="4"/>')
            x += width
    return "".join(parts)


def _in_words(box: Box) -> str:
    there = {status: number for status, number in box.statuses.items() if number}
    if box.jobs == 1:
        return next(iter(there), "")
    return ", ".join(f"{number:,} {status}" for status, number in there.items())


def _label(box: Box) -> str:
    times = f" × {box.jobs:,}" if box.jobs > 1 else ""
    return _cut(box.name, _LETTERS - len(times)) + times


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
