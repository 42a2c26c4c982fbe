"""The windows of many runs as a table: one row a window, with every measurement.

The processes that read the journals also format the rows: what they send back is ready to be written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jobmeter.errors import StoreError
from jobmeter.exchange.cells import moment
from jobmeter.exchange.pieces import Piece, journal_at, pieces
from jobmeter.exchange.tables import Column, TableRow
from jobmeter.journal.reader import Journal, RunLocation
from jobmeter.journal.window_reader import ColumnKind, Columns, NotCanonical, Part, WindowReader
from jobmeter.model import Kind
from jobmeter.store import Store
from jobmeter.store.store import IndexedRun
from jobmeter.times import utc

WINDOW_COLUMNS = (
    Column("id", "text"),
    Column("name", "text"),
    Column("seconds", "number"),
    Column("timestamp", "time"),
    Column("samples", "whole"),
)

Encode = Callable[[Sequence[Column], Sequence[TableRow]], Any]
"""Converts rows to what a child process sends back: a text, or the rows themselves."""


def window_columns(store: Store, selected: Iterable[IndexedRun]) -> list[Column]:
    """The columns that the windows of these runs need, in the order of their first occurrence."""
    reading = _Reading(with_windows=False)

    def read(batch: list[IndexedRun]) -> Piece:
        runs = reading.read(batch)
        distinct = dict.fromkeys(columns for parts in runs for columns, _ in parts or ())
        content = [[tuple(column) for column in columns] for columns in distinct]
        return Piece(len(batch), 0, content, _missing(batch, runs))

    columns: dict[str, Column] = {}
    for piece in pieces(store, selected, read):
        for each in piece.content:
            for column in _table_columns(ColumnKind(*values) for values in each):
                columns.setdefault(column.name, column)
    return [*WINDOW_COLUMNS, *columns.values()]


def window_pieces(
    store: Store,
    selected: Iterable[IndexedRun],
    columns: Sequence[Column] | None,
    encode: Encode,
    between: str = "",
) -> Iterator[Piece]:
    """The windows of these runs as rows with these columns.

    If `columns` is None, each run has its own columns, and the texts of the runs are joined by `between`.
    """
    reading = _Reading()
    common = None if columns is None else _RowMaker(columns)

    def read(batch: list[IndexedRun]) -> Piece:
        runs = reading.read(batch)
        tables = []
        for run, parts in zip(batch, runs):
            if parts:
                maker = common or _RowMaker(_columns_of_run(parts))
                tables.append((maker.columns, maker.rows(run, parts)))
        if common is None:
            content = between.join(encode(own, rows) for own, rows in tables if rows)
        else:
            content = encode(common.columns, [row for _, rows in tables for row in rows])
        return Piece(len(batch), sum(len(rows) for _, rows in tables), content, _missing(batch, runs))

    return pieces(store, selected, read)


def _missing(batch: list[IndexedRun], runs: list[list[Part] | None]) -> list[str]:
    return [run.run_id for run, parts in zip(batch, runs) if parts is None]


class _Reading:
    """Reads batch after batch; the last file stays open, because the next batch may continue in it."""

    def __init__(self, *, with_windows: bool = True) -> None:
        self._with_windows = with_windows
        self._path = ""
        self._reader: WindowReader | None = None

    def read(self, batch: list[IndexedRun]) -> list[list[Part] | None]:
        """The windows of each run, in the order of the batch; None for a run that is not there any more."""
        # They are read in the order in which they are in the files.
        in_order = sorted(batch, key=lambda run: (run.path, run.offset))
        read = {run.run_id: self._read_run(run) for run in in_order}
        return [read[run.run_id] for run in batch]

    def _read_run(self, run: IndexedRun) -> list[Part] | None:
        location = RunLocation(run.run_id, run.offset, run.line)
        try:
            reader = self._open(run.path)
            return reader.windows(location) if self._with_windows else reader.columns(location)
        except (NotCanonical, StoreError):
            journal = journal_at(run)
            return None if journal is None else _parts_of(journal)

    def _open(self, path: str) -> WindowReader:
        if self._reader is None or self._path != path:
            if self._reader is not None:
                self._reader.close()
            self._reader = None
            self._path, self._reader = path, WindowReader(path)
        return self._reader


def _parts_of(journal: Journal) -> list[Part]:
    described: Any = journal.header.get("measurements", {})
    parts: list[Part] = []
    for window in journal.windows:
        columns = tuple(
            ColumnKind(key, about.get("kind", ""), about.get("unit", ""))
            for key in window.cells
            for about in (described.get(key, {}),)
        )
        if not parts or parts[-1][0] != columns:
            parts.append((columns, []))
        parts[-1][1].append([window.seconds, window.samples, *window.cells.values()])
    return parts


def _columns_of_run(parts: Sequence[Part]) -> list[Column]:
    columns = {column.name: column for each, _ in parts for column in _table_columns(each)}
    return [*WINDOW_COLUMNS, *columns.values()]


def _table_columns(columns: Iterable[ColumnKind]) -> Iterator[Column]:
    for key, kind, unit in columns:
        number = "whole" if unit == "bytes" else "number"
        if kind == Kind.GAUGE.value:
            yield Column(f"{key}_peak", number)
            yield Column(f"{key}_mean", number)
        else:
            yield Column(key, number if kind == Kind.COUNTER.value else "text")


class _RowMaker:
    """Converts windows to rows with these columns; values without a column are left out."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        self._at = {column.name: number for number, column in enumerate(columns)}
        self._positions: dict[Columns, tuple[list[tuple[int, int, int]], list[tuple[int, int]]]] = {}

    def rows(self, run: IndexedRun, parts: Sequence[Part]) -> list[TableRow]:
        """One row per window."""
        started = None if run.started is None else moment(run.started, "started")
        blank: list[Any] = [None] * len(self.columns)
        blank[0], blank[1] = run.run_id, run.name
        rows: list[TableRow] = []
        for kinds, windows in parts:
            gauges, others = self._positions.get(kinds) or self._find_positions(kinds)
            for window in windows:
                row = blank.copy()
                row[2], row[4] = window[0], window[1]
                if started is not None:
                    row[3] = utc(started + window[0])
                for source, peak_at, mean_at in gauges:
                    cell = window[source]
                    # A single number is both peak and mean: the level did not move.
                    row[peak_at], row[mean_at] = cell if type(cell) is list else (cell, cell)
                for source, at in others:
                    cell = window[source]
                    row[at] = json.dumps(cell, ensure_ascii=False) if type(cell) in (dict, list) else cell
                rows.append(row)
        return rows

    def _find_positions(self, kinds: Columns) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
        """The positions of gauges and of other cells in a window, each with its positions in a row."""
        gauges, others = [], []
        for source, (key, kind, _) in enumerate(kinds, start=2):
            if kind == Kind.GAUGE.value and f"{key}_peak" in self._at:
                gauges.append((source, self._at[f"{key}_peak"], self._at[f"{key}_mean"]))
            elif kind != Kind.GAUGE.value and key in self._at:
                others.append((source, self._at[key]))
        self._positions[kinds] = gauges, others
        return gauges, others
