"""Tables of the workflow's commands: for people on a terminal, aligned text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobmeter.report.listing import plain_table, printable, rich_table


def print_table(headings: Sequence[str], units: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(rich_table(headings, units, cells))
    else:
        print("\n".join(plain_table(headings, units, cells)))
