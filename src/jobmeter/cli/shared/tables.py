"""Tables on stdout: for people on a terminal, aligned text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from jobmeter.report.table import plain_table, printable, rich_table, status_style


def print_table(
    headings: Sequence[str],
    units: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    may_be_cut: Sequence[str] = (),
    style: Callable[[str, str], str] = status_style,
) -> None:
    """Print the table; on a terminal that is too narrow the columns that may be cut give way."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(rich_table(headings, units, cells, may_be_cut=may_be_cut, style=style))
    else:
        print("\n".join(plain_table(headings, units, cells)))
