"""Runs as a table: for people on a terminal, aligned text in a pipe."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jobmeter.model import Status
from jobmeter.times import parse_moment
from jobmeter.units import text

_GOOD: dict[str, str] = {Status.COMPLETED: "green", Status.RUNNING: "cyan", Status.DETACHED: "cyan"}
_MAY_BE_CUT = ("name", "command", "cwd", "labels")


def heading(field: str) -> str:
    """The field's name, without the unit that each of its cells shows."""
    for suffix in ("_seconds", "_bytes", "_percent"):
        field = field.removesuffix(suffix)
    return field


def cell(row: Mapping[str, Any], field: str, unit: str) -> str:
    """One value of a run, for people; empty when it was not measured."""
    name, _, key = field.partition(".")
    value = row.get(name, {}).get(key) if key else row.get(field)
    if value is None:
        return ""
    if unit == "time":
        return local_time(str(value))
    if isinstance(value, dict):
        return printable(" ".join(f"{key}={entry}" for key, entry in value.items()))
    if isinstance(value, list):
        return printable(shlex.join(map(str, value)))
    if isinstance(value, str):
        return printable(value)
    if field in ("exit_code", "signal"):
        return str(value)
    return ("≥ " if field in row.get("at_least", ()) else "") + text(value, unit)


def local_time(iso: str) -> str:
    """A time of a record as the clock here showed it."""
    try:
        return parse_moment(iso).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return iso


def printable(words: str) -> str:
    """The text on one line: what would move a terminal's cursor is shown as `?`."""
    return words if words.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in words)


def is_right_aligned(unit: str) -> bool:
    return unit not in ("text", "time", "json")


def plain_table(headings: Sequence[str], units: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Aligned lines without decoration, so that `awk` and `sort` can work on them."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    aligned = []
    for line in lines:
        cells = [
            content.rjust(width) if is_right_aligned(unit) else content.ljust(width)
            for content, width, unit in zip(line, widths, units)
        ]
        aligned.append("  ".join(cells).rstrip())
    return aligned


def status_style(field: str, content: str) -> str:
    """How a run ended has a colour."""
    return _GOOD.get(content, "red") if field == "status" else ""


def rich_table(
    fields: Sequence[str],
    units: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    may_be_cut: Sequence[str] = _MAY_BE_CUT,
    style: Callable[[str, str], str] = status_style,
) -> Any:
    """The same for a terminal: what is too wide is cut, and `style` says how the content of a field looks."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    lines = list(rows)
    for column, (field, unit) in enumerate(zip(fields, units)):
        widest = max((len(line[column]) for line in lines), default=0)
        # Ids and figures must be complete; names and commands may be cut.
        cut = field in may_be_cut or "." in field
        table.add_column(
            heading(field),
            justify="right" if is_right_aligned(unit) else "left",
            # rich takes what is too much from columns that may wrap. Their cells do not: they end in `…`.
            no_wrap=not cut,
            overflow="ellipsis",
            min_width=min(widest, 8) if cut else widest,
        )
    for row in lines:
        cells = zip(fields, row)
        table.add_row(*(Text(words, style(field, words), no_wrap=True, overflow="ellipsis") for field, words in cells))
    return table
