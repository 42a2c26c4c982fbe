"""A run as a small piece of HTML, for notebooks: its figures, and memory and CPU over time. It needs no other file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.analyse.timeline import samples
from jobmeter.record.read import figures
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_WIDTH, _HEIGHT = 320, 64
_CURVES = (("memory", "bytes", "#1f77b4"), ("CPU", "percent", "#d62728"))


def card(record: Record, windows: Iterable[tuple[float, Mapping[str, Any]]]) -> str:
    """The HTML of one run."""
    outcome = f"{escape(record['name'])} {escape(record['outcome']['status'])}"
    wall = record.get("wall_seconds")
    title = outcome if wall is None else f"{outcome}, {text(wall, 'seconds')}"
    rows = [
        _row(row.heading, text(figure["value"], row.unit), f"{figure['quality']}, {figure['from']}")
        for row in HEADLINE
        if row.in_show and (figure := figures(record).get(row.name)) is not None
    ]
    return (
        f"<div><strong>{title}</strong> <code>{escape(record['id'])}</code>"
        f"<table>{''.join(rows)}</table>{''.join(_charts(windows))}</div>"
    )


def _row(heading: str, value: str, source: str) -> str:
    left, right = "style='text-align:left'", "style='text-align:right'"
    return f"<tr><th {left}>{heading}</th><td {right}>{escape(value)}</td><td {left}>{escape(source)}</td></tr>"


def _charts(windows: Iterable[tuple[float, Mapping[str, Any]]]) -> Iterable[str]:
    taken = samples(windows)
    curves = ([sample.memory_bytes for sample in taken], [sample.cpu_percent for sample in taken])
    for (name, unit, colour), values in zip(_CURVES, curves):
        points = [(sample.seconds, value) for sample, value in zip(taken, values) if value is not None]
        if len(points) > 1:
            yield _chart(name, unit, colour, points)


def _chart(name: str, unit: str, colour: str, points: Sequence[tuple[float, float]]) -> str:
    """One curve from zero, with its highest value and the time it spans."""
    longest, highest = points[-1][0] or 1.0, max(value for _, value in points) or 1.0
    line = " ".join(f"{_WIDTH * x / longest:.1f},{_HEIGHT * (1 - y / highest) + 2:.1f}" for x, y in points)
    label = f"{name}: {text(highest, unit)} at most, {text(longest, 'seconds')}"
    return (
        f"<svg role='img' aria-label='{escape(label)}' width='{_WIDTH}' height='{_HEIGHT + 20}' "
        f"viewBox='0 0 {_WIDTH} {_HEIGHT + 20}' style='display:block'>"
        f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='1.5'/>"
        f"<line x1='0' x2='{_WIDTH}' y1='{_HEIGHT + 3}' y2='{_HEIGHT + 3}' stroke='#999'/>"
        f"<text x='0' y='{_HEIGHT + 17}' font-size='12' fill='currentColor'>{escape(label)}</text></svg>"
    )
