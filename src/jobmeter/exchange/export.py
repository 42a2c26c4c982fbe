"""Writes tables as CSV, JSON Lines or Parquet, row by row, to a file that appears only when it is complete."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from jobmeter.atomic_file import replacing
from jobmeter.errors import JobmeterError, UsageError
from jobmeter.exchange.tables import Column, TableRow
from jobmeter.times import parse_moment

_ROWS_AT_ONCE = 10_000


def write_csv(file: IO[str], columns: Callable[[], Sequence[Column]], rows: Iterable[TableRow]) -> int:
    """Absent is an empty cell. Returns how many rows there were."""
    names = [column.name for column in columns()]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    count = 0
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])
        count += 1
    return count


def _cell(value: Any) -> Any:
    """Surrogates stand for bytes that are no UTF-8, which no CSV holds."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "" if value is None else value


def write_jsonl(file: IO[str], columns: Callable[[], Sequence[Column]], rows: Iterable[TableRow]) -> int:
    """Absent is a missing key. Returns how many rows there were."""
    count = 0
    for row in rows:
        file.write(json.dumps(row) + "\n")
        count += 1
    return count


def write_parquet(file: IO[bytes], columns: Callable[[], Sequence[Column]], rows: Iterable[TableRow]) -> int:
    """Absent is null; numbers, whole numbers, texts and times have columns of their type. Returns the count of rows."""
    arrow, parquet = _pyarrow()
    types = {
        "text": arrow.string(),
        "time": arrow.timestamp("ms", "UTC"),
        "whole": arrow.int64(),
        "number": arrow.float64(),
    }
    shown = columns()
    schema = arrow.schema([(column.name, types[column.type]) for column in shown])
    count = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in _batches(rows):
            made = [_array_values(column, batch) for column in shown]
            arrays = [arrow.array(values, type=field.type) for values, field in zip(made, schema)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            count += len(batch)
    return count


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed. Install it: pip install 'jobmeter[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet


def _array_values(column: Column, rows: list[TableRow]) -> list[Any]:
    values = (row.get(column.name) for row in rows)
    if column.type == "number":
        return [None if value is None else float(value) for value in values]
    if column.type == "whole":
        return [None if value is None else round(value) for value in values]
    if column.type == "time":
        return [None if value is None else parse_moment(value) for value in values]
    return [_cell(value) if isinstance(value, str) else value for value in values]


def _batches(rows: Iterable[TableRow]) -> Iterator[list[TableRow]]:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


class ExportFormat(NamedTuple):
    """A form in which a table can be written."""

    write: Callable[[IO[Any], Callable[[], Sequence[Column]], Iterable[TableRow]], int]
    """(file, columns, rows) → how many rows there were. What the columns are takes a pass over all runs."""
    is_binary: bool = False
    holds_lists: bool = False  # else lists and objects are written as text


FORMATS = {
    "csv": ExportFormat(write_csv),
    "jsonl": ExportFormat(write_jsonl, holds_lists=True),
    "parquet": ExportFormat(write_parquet, is_binary=True),
}
"""By the name that `--format` takes, which also ends the names of such files."""


@contextlib.contextmanager
def destination(path: str | None, *, binary: bool = False) -> Iterator[IO[Any]]:
    """The output: stdout, or a file that is put in place at the end, and not if something fails."""
    if path is None:
        yield sys.stdout
        return
    check_destination(path)
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe or a device is written to, never replaced.
        with open(path, "wb") if binary else open(path, "w", encoding="utf-8", newline="") as file:
            yield file
        return
    try:
        with replacing(path, binary=binary) as file:
            yield file
    except OSError as error:
        raise JobmeterError(f"{path}: {error.strerror}. Nothing was written there.") from None


def check_destination(path: str) -> None:
    """UsageError, before any work, when the file cannot be created."""
    directory = os.path.dirname(os.path.realpath(path))
    if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
        return
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(directory, os.W_OK):
        raise UsageError(f"-o: {path}: cannot be written there. Name a file in a directory that you may write to.")
