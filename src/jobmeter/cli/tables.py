"""Tables on stdout: for people on a terminal, aligned text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence


def print_table(
    headings: Sequence[str],
    units: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    may_be_cut: Sequence[str] = (),
    style: Callable[[str, str], str] = lambda _field, _content: "",
) -> None:
    from jobmeter.report.listing import plain_table, rich_table

    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(rich_table(headings, units, rows, may_be_cut=may_be_cut, style=style))
    else:
        print("\n".join(plain_table(headings, units, rows)))
