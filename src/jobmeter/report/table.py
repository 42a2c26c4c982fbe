"""Tables as text: cells for people, lines for a terminal and for a pipe."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter.model import Status
from jobmeter.report.table_layout import GAP, Column, Layout, lay_out
from jobmeter.terminal import printable
from jobmeter.times import parse_moment
from jobmeter.units import text

if TYPE_CHECKING:
    from rich.text import Text

_GOOD: dict[str, str] = {Status.COMPLETED: "green", Status.RUNNING: "cyan", Status.DETACHED: "cyan"}


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
    """A time of a record in local time; the text itself if it is not a time."""
    try:
        return parse_moment(iso).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return iso


def plain_lines(layout: Layout) -> list[str]:
    """Aligned lines without decoration, so that `awk` and `sort` can work on them."""
    return [(" " * GAP).join(cells).rstrip() for cells in layout.lines()]


def fitted_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, elsewhere: str
) -> list[str]:
    """The table as a part of other text. A last line names the columns left out, and where they are (`elsewhere`)."""
    layout = lay_out(columns, rows, width)
    note = [f"(no room for {', '.join(layout.left_out)}; {elsewhere})"] if layout.left_out else []
    return plain_lines(layout) + note


def status_style(column: str, content: str) -> str:
    """The colour of a cell in the column `status`; none for other columns."""
    return _GOOD.get(content, "red") if column == "status" else ""


def styled_lines(
    layout: Layout, style: Callable[[str, str], str] = status_style, *, has_total: bool = False
) -> Iterator[Text]:
    """The lines of a table for a terminal: headings and a total are bold, `style` returns the style of other cells."""
    from rich.text import Text

    last = len(layout.headings) + len(layout.rows) - 1
    for number, cells in enumerate(layout.lines()):
        line = Text()
        for column, content in zip(layout.columns, cells):
            is_bold = number < len(layout.headings) or (has_total and number == last)
            line.append(content, "bold" if is_bold else style(column.name, content.strip()))
            line.append(" " * GAP)
        line.rstrip()
        yield line
