"""Tables of runs: one row a run with its headline figures, as the index of the store has them.

A row has a cell for each column, None where nothing was measured. The columns are known beforehand, so that a table
can be written while it is read.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.fields import FIELDS

if TYPE_CHECKING:
    from jobmeter.store import Selection, Store

TableRow = Sequence[Any]
"""Cells in the order of the columns; None where nothing was measured."""

ROWS_AT_ONCE = 1000
_WHOLE = ("exit_code", "signal", *(figure.name for figure in HEADLINE if figure.is_whole))


class Column(NamedTuple):
    """A column: its name and the type of its values: text, time, whole or number."""

    name: str
    type: str


def run_columns() -> list[Column]:
    """The columns of the table of runs: the fields that the store has of each run."""
    return [Column(name, _type(name, field.unit)) for name, field in FIELDS.items()]


def _type(name: str, unit: str) -> str:
    if name in _WHOLE or unit == "bytes":
        return "whole"
    if unit in ("text", "time"):
        return unit
    return "text" if unit == "json" else "number"


def run_rows(store: Store, selections: Sequence[Selection], *, with_lists: bool) -> Iterator[list[TableRow]]:
    """The rows of the selected runs, in batches.

    With `with_lists`, labels, command and the like are objects and lists. Otherwise they are texts: the command quoted
    for a shell, the others as JSON.
    """
    columns = [job_metadata.c[field.column] for field in FIELDS.values()]
    convert = json.loads if with_lists else _flat
    special = [
        (at, _command if name == "command" and not with_lists else convert)
        for at, (name, field) in enumerate(FIELDS.items())
        if field.unit == "json"
    ]
    batch: list[TableRow] = []
    for selection in selections:
        for values in store.rows(selection, columns):
            row = list(values)
            for at, converted in special:
                row[at] = None if row[at] in (None, "{}", "[]") else converted(row[at])
            batch.append(row)
            if len(batch) == ROWS_AT_ONCE:
                yield batch
                batch = []
    if batch:
        yield batch


@functools.lru_cache(maxsize=4096)
def _flat(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True)


def _command(text: str) -> str:
    return shlex.join(json.loads(text))
