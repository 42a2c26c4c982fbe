"""`jobmeter export`: writes runs as a table, as a database, or as whole records, for other programs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.filters import FILTERS, add_filter_options, selection
from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.progress import progress
from jobmeter.errors import UsageError
from jobmeter.settings import resolve

if TYPE_CHECKING:
    from jobmeter.exchange.formats import TextFormat
    from jobmeter.exchange.pieces import Piece
    from jobmeter.exchange.tables import Column
    from jobmeter.store import Selection, Store

SQLITE = "sqlite"
_OTHER_ENDINGS = {"ndjson": "jsonl", "db": SQLITE, "sqlite": SQLITE, "sqlite3": SQLITE}
"""File extensions that select a format, in addition to the names of the formats."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)

    from jobmeter.exchange.destination import check_destination
    from jobmeter.store import open_store

    if options.output is not None:
        check_destination(options.output)
    form = _format(options)
    chosen = selection(options)
    store = open_store(resolve("store", options.store), warn)
    selections = _selections(store, chosen, options)
    with progress() as show:
        count = _write(store, selections, form, options, show)
    if options.output is not None:
        unit_name = "windows" if options.windows and not options.records else "runs"
        warn(f"{options.output}: {count} {unit_name[:-1] if count == 1 else unit_name}")
    if not count and options.windows:
        warn("none of these runs has a time series")
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    from jobmeter.exchange.formats import FORMATS

    parser = Parser("export", "Write runs as a table: one row a run, or with --windows one row a window of each.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="id, unique prefix, name or `last` (default: all)")
    parser.add_argument("--format", choices=[*FORMATS, SQLITE], help="default: by the ending of FILE, else csv")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to FILE instead of stdout; FILE appears once it is complete"
    )
    parser.add_argument("--windows", action="store_true", help="the time series instead of the summary")
    parser.add_argument("--records", action="store_true", help="whole records, for `jobmeter import` (jsonl)")
    add_filter_options(parser)
    add_store_option(parser)
    return parser.parse_args(arguments)


def _format(options: argparse.Namespace) -> str:
    """The requested format, or that of the file's extension. Raises UsageError if it does not fit the other options."""
    from jobmeter.exchange.formats import FORMATS, TextFormat

    form = options.format or _format_of_file(options.output, "jsonl" if options.records else "csv")
    if not isinstance(FORMATS.get(form), TextFormat) and options.output is None:
        raise UsageError(f"{form} is binary: name a file with -o FILE")
    if options.records and form != "jsonl":
        raise UsageError(f"--records are written as jsonl, not as {form}")
    if options.windows and form == SQLITE:
        raise UsageError("--windows: a database has the time series in any case; leave --windows out")
    return str(form)


def _format_of_file(path: str | None, default: str) -> str:
    if path is None or (os.path.exists(path) and not os.path.isfile(path)):
        return default  # a pipe or a device may be called anything
    from jobmeter.exchange.formats import FORMATS

    forms = {**{name: name for name in FORMATS}, **_OTHER_ENDINGS}
    _, point, ending = path.rpartition("/")[2].lower().rpartition(".")
    if not point or ending not in forms:
        endings = " ".join(f".{each}" for each in forms)
        raise UsageError(f"-o: {path}: its ending names no format. Choose one of {endings}, or name it with --format.")
    return forms[ending]


def _selections(store: Store, chosen: Selection, options: argparse.Namespace) -> list[Selection]:
    """Selections of the runs that are named, each once, or of those that the filters select."""
    named = dict.fromkeys(store.resolve(text) for text in options.runs)
    if named and any(getattr(options, name) for name in FILTERS):
        raise UsageError("name runs or filter them, not both")
    return [chosen._replace(where=f'id = "{run_id}"') for run_id in named] or [chosen]


def _write(
    store: Store, selections: Sequence[Selection], form: str, options: argparse.Namespace, show: Callable[[str], None]
) -> int:
    """Write the table and return how many rows it has."""
    from jobmeter.exchange.destination import destination
    from jobmeter.exchange.formats import FORMATS, TextFormat

    if form == SQLITE:
        from jobmeter.exchange.database import write_database

        return write_database(options.output, store, selections, show)
    to_write = FORMATS[form]
    is_text = isinstance(to_write, TextFormat)
    # On a terminal the rows themselves show the progress.
    label = None if options.output is None else options.output
    with destination(options.output, binary=not is_text) as file:
        if isinstance(to_write, TextFormat):
            columns, pieces = _table(store, selections, to_write, options)
            return _write_text(file, to_write, columns, _shown(pieces, store, selections, label, show))
        columns, pieces = _table(store, selections, None, options)
        counts: list[int] = []

        def batches() -> Iterator[Any]:
            for piece in _shown(pieces, store, selections, label, show):
                counts.append(piece.rows)
                if piece.rows:
                    yield piece.content

        to_write.write(file, columns, batches())
        return sum(counts)


def _table(
    store: Store, selections: Sequence[Selection], form: TextFormat | None, options: argparse.Namespace
) -> tuple[Sequence[Column], Iterator[Piece]]:
    """The columns and the rows: rows as text of the format, or unchanged if `form` is None."""
    from jobmeter.exchange.pieces import Piece
    from jobmeter.exchange.record_lines import record_pieces
    from jobmeter.exchange.tables import run_columns, run_rows
    from jobmeter.exchange.window_table import window_columns, window_pieces

    def indexed_runs(*, with_windows: bool) -> Iterator[Any]:
        return (run for each in selections for run in store.indexed_runs(each, with_windows=with_windows))

    encode = _as_they_are if form is None else form.rows
    if options.records:
        return [], record_pieces(store, indexed_runs(with_windows=False), with_windows=options.windows)
    if options.windows:
        columns = None
        if form is None or form.needs_columns:
            columns = window_columns(store, indexed_runs(with_windows=True))
        between = "" if form is None else form.between
        return columns or [], window_pieces(store, indexed_runs(with_windows=True), columns, encode, between)
    shown = run_columns()
    rows = run_rows(store, selections, with_lists=form is not None and form.holds_lists)
    return shown, (Piece(len(batch), len(batch), encode(shown, batch), []) for batch in rows)


def _as_they_are(columns: Sequence[Column], rows: Sequence[Any]) -> Any:
    return rows


def _write_text(file: Any, form: TextFormat, columns: Sequence[Column], pieces: Iterable[Piece]) -> int:
    count = 0
    file.write(form.begin(columns))
    for piece in pieces:
        if piece.rows:
            file.write((form.between if count else "") + piece.content)
            count += piece.rows
    file.write(form.end)
    return count


def _shown(
    pieces: Iterable[Piece],
    store: Store,
    selections: Sequence[Selection],
    label: str | None,
    show: Callable[[str], None],
) -> Iterator[Piece]:
    """Yield the pieces, and show on a line how many runs were written, and of how many."""
    if label is None:
        yield from pieces
        return
    total = sum(store.count(each) for each in selections)
    done = 0
    for piece in pieces:
        yield piece
        done += piece.runs
        show(f"{label}: {done:,} of {total:,} runs")
