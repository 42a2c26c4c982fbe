"""Which columns of a table fit into a terminal, and how wide each is.

Numbers are never cut. If there is too little room, these steps follow one another: texts that may be shortened are
(names in the middle, see `shortening`), times lose their year, headings are broken at `_`, texts are shortened further,
and columns are left out from the right. Essential columns, such as those that identify a row, stay. Without a width, as
in a pipe, nothing is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobmeter.report.shortening import cell_width, distinct_width, shorten

GAP = 2
"""Blanks between two columns."""
_NAME, _SHORT_NAME = 16, 8
"""The least width of a text that may be shortened: the first, or the second if there is no room for the first."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    unit: str = "text"
    essential: bool = False  # it identifies a row, or is what the table is for: never left out
    shortens: bool = False

    @property
    def is_right_aligned(self) -> bool:
        return self.unit not in ("text", "time", "json")


class Layout(NamedTuple):
    """A table as it is printed."""

    columns: list[Column]
    widths: list[int]
    headings: list[list[str]]  # line by line
    rows: list[list[str]]
    left_out: list[str]  # names of columns

    @property
    def width(self) -> int:
        return sum(self.widths) + GAP * (len(self.widths) - 1)

    def lines(self) -> Iterator[list[str]]:
        """The cells of each line, headings first, each as wide as its column."""
        for line in (*self.headings, *self.rows):
            yield [
                _padded(cell, width, right=column.is_right_aligned)
                for cell, width, column in zip(line, self.widths, self.columns)
            ]


class _Squeeze(NamedTuple):
    """How far columns are narrowed."""

    text_width: int | None  # None: texts are whole
    short_times: bool = False
    broken_headings: bool = False


_SQUEEZES = (
    _Squeeze(None),
    _Squeeze(_NAME),
    _Squeeze(_NAME, short_times=True),
    _Squeeze(_NAME, short_times=True, broken_headings=True),
    _Squeeze(_SHORT_NAME, short_times=True, broken_headings=True),
)


def lay_out(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None = None) -> Layout:
    """The layout of the table in `width` columns of a terminal, or wider if its essential columns need that."""
    if width is None:
        return _Draft(columns, rows, _SQUEEZES[0]).layout([])
    shown = list(range(len(columns)))
    left_out: list[str] = []
    while True:
        for squeeze in _SQUEEZES:
            draft = _Draft([columns[n] for n in shown], [[row[n] for n in shown] for row in rows], squeeze)
            if draft.least_width <= width:
                return draft.layout(left_out, width)
        optional = [n for n in shown if not columns[n].essential]
        if not optional:
            return draft.layout(left_out)
        shown.remove(optional[-1])
        left_out.insert(0, columns[optional[-1]].name)


class _Draft:
    """A table that is narrowed by one squeeze."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], squeeze: _Squeeze) -> None:
        self._columns = list(columns)
        self._cells = [_column_cells(column, [row[n] for row in rows], squeeze) for n, column in enumerate(columns)]
        self._headings = [_parts(column.name) if squeeze.broken_headings else [column.name] for column in self._columns]
        self._whole = [
            max([*map(cell_width, {*cells, *heading})]) for cells, heading in zip(self._cells, self._headings)
        ]
        self._least = list(self._whole)
        if squeeze.text_width is not None:
            self._least = [self._shortened_width(n, squeeze.text_width) for n in range(len(self._columns))]
        self.least_width = sum(self._least) + GAP * (len(self._columns) - 1)

    def layout(self, left_out: list[str], width: int | None = None) -> Layout:
        """The layout, with the spare room up to `width` shared among the texts that are shortened."""
        widths = list(self._least)
        spare = 0 if width is None else width - self.least_width
        while spare > 0 and (growing := [n for n, size in enumerate(widths) if size < self._whole[n]]):
            for n in growing[:spare]:
                widths[n] += 1
            spare -= len(growing[:spare])
        cells = [self._shortened(n, size) for n, size in enumerate(widths)]
        return Layout(self._columns, widths, self._heading_lines(widths), list(map(list, zip(*cells))), left_out)

    def _shortened(self, number: int, width: int) -> list[str]:
        cells = self._cells[number]
        if all(cell_width(cell) <= width for cell in set(cells)):
            return cells
        short = shorten(cells, width)
        if width > self._least[number] and len(set(short.values())) < len(short):
            # In the least width they may be distinct: `_shortened_width` may have chosen it so.
            least = shorten(cells, self._least[number])
            short = max((short, least), key=lambda each: len(set(each.values())))
        return [short[cell] for cell in cells]

    def _shortened_width(self, number: int, text_width: int) -> int:
        column, whole = self._columns[number], self._whole[number]
        if not column.shortens or whole <= text_width:
            return whole
        least = max(text_width, *map(cell_width, self._headings[number]))
        # Rows that the other identifying columns do not distinguish must differ in this column.
        if column.essential and not self._is_identified_without(number):
            least = distinct_width(self._cells[number], least)
        return min(least, whole)

    def _is_identified_without(self, number: int) -> bool:
        """Whether all rows differ in the essential columns that are never shortened."""
        others = [n for n, column in enumerate(self._columns) if column.essential and not column.shortens]
        keys = list(zip(*(self._cells[n] for n in others)))
        return len(set(keys)) == len(self._cells[number])

    def _heading_lines(self, widths: Sequence[int]) -> list[list[str]]:
        """The headings, broken where they are wider than their column, the last line just above the rows."""
        broken = [_filled(parts, width) for parts, width in zip(self._headings, widths)]
        height = max(map(len, broken), default=0)
        return list(map(list, zip(*([""] * (height - len(lines)) + lines for lines in broken))))


def _column_cells(column: Column, cells: list[str], squeeze: _Squeeze) -> list[str]:
    return short_times(cells) if column.unit == "time" and squeeze.short_times else cells


def short_times(times: Sequence[str]) -> list[str]:
    """`2026-01-31 12:00:00` as `01-31 12:00`; if the years differ, as `2026-01-31`."""
    part = slice(5, 16) if len({time[:4] for time in times if time}) == 1 else slice(0, 10)
    return [time[part] for time in times]


def _parts(heading: str) -> list[str]:
    """What a heading may be broken into: `memory_`, `peak`."""
    return re.findall(r"[^_]*_+|[^_]+", heading) or [heading]


def _filled(parts: Sequence[str], width: int) -> list[str]:
    """The parts joined to as few lines as fit the width."""
    lines = [parts[0]]
    for part in parts[1:]:
        if cell_width(lines[-1] + part) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    return lines


def _padded(words: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - cell_width(words))
    return blanks + words if right else words + blanks
