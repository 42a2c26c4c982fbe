"""CSV that is safe to open in a spreadsheet: a text that would be taken for a formula is marked as text."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import IO, Any

FORMULA = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")
"""The first characters of cells that a spreadsheet computes or executes: `=HYPERLINK(…)`, `@SUM(…)`."""


class CsvWriter:
    """Writes rows. A text that begins like a formula gets an apostrophe before it; numbers stay numbers."""

    def __init__(self, file: IO[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")

    def writerow(self, cells: Iterable[Any]) -> None:
        self._writer.writerow([_harmless(cell) if type(cell) is str else cell for cell in cells])

    def writerows(self, rows: Iterable[Iterable[Any]]) -> None:
        for cells in rows:
            self.writerow(cells)


def _harmless(cell: str) -> str:
    # Python's writer does not quote a carriage return, and readers take it for the end of the row.
    cell = cell.replace("\r", "\\r")
    return f"'{cell}" if cell.startswith(FORMULA) and not _is_number(cell) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[0] in "+-"
