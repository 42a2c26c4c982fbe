"""Reads tables of other tools: a line that names the columns, then one line per row."""

from __future__ import annotations

import csv
from collections.abc import Callable, Container, Iterator
from typing import BinaryIO, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.exchange.foreign import UnusableRow, decoded


class ForeignRow(NamedTuple):
    """One line: its cells by column, without empty ones."""

    line: int
    where: str  # file and line, for messages
    cells: dict[str, str]


class TableFormat(NamedTuple):
    """How a tool writes its tables."""

    columns: Callable[[str], list[str] | None]  # named by the first line; None if it is of another tool
    split: Callable[[str, str], list[str]]  # a line into its cells; the second text is the first line
    empty: Container[str]  # texts that stand for an empty cell
    no_header: str  # the error for a file whose first line names no columns


def read_rows(path: str, file: BinaryIO, table: TableFormat) -> Iterator[ForeignRow | UnusableRow]:
    """The rows of a file; a bad line is an UnusableRow. Raises UsageError if the first line names no columns."""
    columns: list[str] | None = None
    header = ""
    for line, text, why in decoded(file):
        where = f"{path}: line {line}"
        if columns is None:
            header = text or ""
            columns = table.columns(header)
            if columns is None:
                raise UsageError(f"{where}: {table.no_header}")
        elif text is None:
            yield UnusableRow(where, why)
        elif text.strip():
            try:
                cells = [cell.strip() for cell in table.split(text, header)]
            except csv.Error as error:
                yield UnusableRow(where, f"cannot be split into cells ({error})")
                continue
            if len(cells) == len(columns):
                yield ForeignRow(line, where, {n: cell for n, cell in zip(columns, cells) if cell not in table.empty})
            else:
                yield UnusableRow(where, f"has {len(cells)} cells where the header has {len(columns)}")
