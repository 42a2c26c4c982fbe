"""Tables on stdout: fitted to the width of a terminal, complete in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jobmeter.cli.shared.output import print_lines, warn
from jobmeter.report.table import plain_lines, status_style, styled_lines
from jobmeter.report.table_layout import Column, Layout, lay_out
from jobmeter.terminal import printable

if TYPE_CHECKING:
    from jobmeter.cli.shared.console import TextConsole

EVERYTHING = "--json or a pipe has all"
"""How to see the columns that were left out, in commands that have no better way."""


def print_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    style: Callable[[str, str], str] = status_style,
    has_total: bool = False,
    elsewhere: str = EVERYTHING,
) -> None:
    """Print the table, and on stderr which columns the terminal has no room for; `elsewhere` says how to see them."""
    console = terminal()
    layout = lay_out(columns, printable_cells(rows), None if console is None else console.width)
    if console is None:
        print_lines(plain_lines(layout))
        return
    print_layout(console, layout, style=style, has_total=has_total)
    report_left_out(layout, elsewhere)


def print_layout(
    console: TextConsole,
    layout: Layout,
    *,
    style: Callable[[str, str], str] = status_style,
    has_total: bool = False,
) -> None:
    for line in styled_lines(layout, style, has_total=has_total):
        console.print(line, soft_wrap=True)


def report_left_out(layout: Layout, elsewhere: str = EVERYTHING) -> None:
    """Say which columns are not shown, if any."""
    if layout.left_out:
        sys.stdout.flush()
        warn(f"no room for {', '.join(layout.left_out)}; {elsewhere}")


def terminal() -> TextConsole | None:
    """A console on stdout; None if stdout is not a terminal but a pipe or a file."""
    if not sys.stdout.isatty():
        return None
    from jobmeter.cli.shared.console import TextConsole  # late: not needed in a pipe

    return TextConsole(sys.stdout)


def printable_cells(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[printable(cell) for cell in row] for row in rows]
