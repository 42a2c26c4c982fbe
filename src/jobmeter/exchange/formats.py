"""The formats in which tables are written: CSV, JSON, JSON Lines and Parquet."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from jobmeter.byte_text import as_represented, json_text
from jobmeter.errors import UsageError
from jobmeter.exchange.csv_writer import CsvWriter
from jobmeter.times import parse_moment

if TYPE_CHECKING:
    from jobmeter.exchange.tables import Column, TableRow


def csv_header(columns: Sequence[Column]) -> str:
    return csv_rows(columns, [[column.name for column in columns]])


def csv_rows(columns: Sequence[Column], rows: Sequence[TableRow]) -> str:
    """Rows as CSV. An absent value is an empty cell."""
    text = io.StringIO()
    CsvWriter(text).writerows(rows)
    return text.getvalue()


def jsonl_rows(columns: Sequence[Column], rows: Sequence[TableRow]) -> str:
    """Rows as JSON Lines. An absent value is a missing key."""
    return "".join(f"{_object(columns, row)}\n" for row in rows)


def json_rows(columns: Sequence[Column], rows: Sequence[TableRow]) -> str:
    """Rows as items of a JSON array. An absent value is a missing key."""
    return ",".join(f"\n{_object(columns, row)}" for row in rows)


def _object(columns: Sequence[Column], row: TableRow) -> str:
    return json_text({column.name: cell for column, cell in zip(columns, row) if cell is not None})


def write_parquet(file: IO[bytes], columns: Sequence[Column], batches: Iterable[Sequence[TableRow]]) -> None:
    """Write rows as Parquet, with columns for numbers, whole numbers, texts and times. An absent value is null."""
    arrow, parquet = _pyarrow()
    types = {
        "text": arrow.string(),
        "time": arrow.timestamp("ms", "UTC"),
        "whole": arrow.int64(),
        "number": arrow.float64(),
    }
    schema = arrow.schema([(as_represented(column.name), types[column.type]) for column in columns])
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            made = [_array_values(column, cells) for column, cells in zip(columns, zip(*batch))]
            arrays = [arrow.array(values, type=field.type) for values, field in zip(made, schema)]
            if arrays:
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed. Install it: pip install 'jobmeter[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet


def _array_values(column: Column, values: Iterable[Any]) -> list[Any]:
    """The values of a column; None for one of another type: runs may describe the same key differently."""
    if column.type == "number":
        return [float(value) if isinstance(value, (int, float)) else None for value in values]
    if column.type == "whole":
        return [_whole(value) for value in values]
    if column.type == "time":
        return [parse_moment(value) if value else None for value in values]
    return [value if value is None else as_represented(str(value)) for value in values]


def _whole(value: Any) -> int | None:
    return round(value) if isinstance(value, (int, float)) and abs(value) < 2**63 else None


class TextFormat(NamedTuple):
    """A text format. Many rows are formatted at once."""

    rows: Callable[[Sequence[Column], Sequence[TableRow]], str]
    begin: Callable[[Sequence[Column]], str] = lambda columns: ""
    between: str = ""  # separates the texts of two batches of rows
    end: str = ""
    needs_columns: bool = False  # before the first row, all of them: that takes a pass over all runs
    holds_lists: bool = False  # else lists and objects are written as text


class BinaryFormat(NamedTuple):
    """A format that can only be written to a file, not to stdout."""

    write: Callable[[IO[bytes], Sequence[Column], Iterable[Sequence[TableRow]]], None]


FORMATS: dict[str, TextFormat | BinaryFormat] = {
    "csv": TextFormat(csv_rows, csv_header, needs_columns=True),
    "json": TextFormat(json_rows, lambda columns: "[", between=",", end="\n]\n", holds_lists=True),
    "jsonl": TextFormat(jsonl_rows, holds_lists=True),
    "parquet": BinaryFormat(write_parquet),
}
"""Formats by the name that `--format` takes, which is also the extension of such files."""
