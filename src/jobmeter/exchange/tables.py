"""Tables of runs: one row a run with its headline figures, or one row a window with every measurement.

Rows are plain dicts in which what was not measured is absent; the columns are known beforehand, so that a table can
be written while it is read.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.exchange.cells import moment
from jobmeter.journal.reader import Journal, JournalWindow
from jobmeter.model import Kind
from jobmeter.store.query.fields import FIELDS
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.record.types import Described, RunIdentity

TableRow = dict[str, Any]
"""Cells by column; absent where nothing was measured."""

_WHOLE = ("exit_code", "signal", *(figure.name for figure in HEADLINE if figure.is_whole))


class Column(NamedTuple):
    """A column: its name and the type of its values: text, time, whole or number."""

    name: str
    type: str


def run_columns() -> list[Column]:
    """The columns of the table of runs: the fields that the store has of each."""
    return [Column(name, _type(name, field.unit)) for name, field in FIELDS.items()]


def _type(name: str, unit: str) -> str:
    if name in _WHOLE or unit == "bytes":
        return "whole"
    if unit in ("text", "time"):
        return unit
    return "text" if unit == "json" else "number"


def run_row(run: StoredRun) -> TableRow:
    """A run as the store has it; labels and command only where there are any."""
    return {name: value for name, value in run.items() if name in FIELDS and value not in (None, [], {})}


def flat_row(run: StoredRun) -> TableRow:
    """A run for tables that hold no lists: the command as a shell would read it, labels and the like as JSON."""
    flat = run_row(run)
    if "command" in flat:
        flat["command"] = shlex.join(flat["command"])
    for name, value in flat.items():
        if isinstance(value, (dict, list)):
            flat[name] = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return flat


WINDOW_COLUMNS = (
    Column("id", "text"),
    Column("name", "text"),
    Column("seconds", "number"),
    Column("timestamp", "time"),
    Column("samples", "whole"),
)


def window_columns(journals: Iterable[Journal]) -> list[Column]:
    """The columns that the windows of these runs need, in the order in which they first come."""
    columns: dict[str, Column] = {}
    for journal in journals:
        described = _described(journal)
        for key in {key: None for window in journal.windows for key in window.cells}:
            for column in _columns_of(key, described.get(key, {})):
                columns.setdefault(column.name, column)
    return [*WINDOW_COLUMNS, *columns.values()]


def window_rows(journal: Journal) -> Iterator[TableRow]:
    """The windows of one run."""
    record: RunIdentity = journal.record or journal.header
    kinds = {key: about.get("kind", "") for key, about in _described(journal).items()}
    started = moment(record["started"], "started") if "started" in record else None
    for window in journal.windows:
        yield {**_moment(record, window, started), **_cells(window, kinds)}


def _moment(record: RunIdentity, window: JournalWindow, started: float | None) -> TableRow:
    row: TableRow = {"id": record["id"], "name": record["name"], "seconds": window.seconds}
    if started is not None:
        row["timestamp"] = utc(started + window.seconds)
    row["samples"] = window.samples
    return row


def _described(journal: Journal) -> Described:
    return journal.header.get("measurements", {})


def _columns_of(key: str, described: dict[str, str]) -> list[Column]:
    kind = described.get("kind")
    number = "whole" if described.get("unit") == "bytes" else "number"
    if kind == Kind.GAUGE.value:
        return [Column(f"{key}_peak", number), Column(f"{key}_mean", number)]
    return [Column(key, number if kind == Kind.COUNTER.value else "text")]


def _cells(window: JournalWindow, kinds: dict[str, str]) -> TableRow:
    cells: TableRow = {}
    for key, cell in window.cells.items():
        kind = kinds.get(key, "")
        if cell is None:
            continue
        if kind == Kind.GAUGE.value:
            # One number where the level did not move.
            cells[f"{key}_peak"], cells[f"{key}_mean"] = cell if isinstance(cell, list) else (cell, cell)
        elif kind == Kind.COUNTER.value or isinstance(cell, str):
            cells[key] = cell
        else:
            cells[key] = json.dumps(cell, ensure_ascii=False)
    return cells
