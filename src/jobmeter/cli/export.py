"""`jobmeter export`: runs as a table, or whole, for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.filters import add_filter_options, add_store_option, selection
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.progress import counted
from jobmeter.errors import UsageError
from jobmeter.settings import resolve

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.exchange.tables import Column, TableRow
    from jobmeter.journal.reader import Journal
    from jobmeter.store import Store


def main(arguments: list[str]) -> int:
    from jobmeter.exchange.export import FORMATS, check_destination

    parser = Parser("export", "Write runs as a table: one row a run, or with --windows one row a window of each.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="id, unique prefix, name or `last` (default: all)")
    parser.add_argument("--format", choices=[*FORMATS], help="default: by the name of FILE, else csv")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to FILE instead of stdout; FILE appears once it is complete"
    )
    parser.add_argument("--windows", action="store_true", help="the time series instead of the summary")
    parser.add_argument("--records", action="store_true", help="whole records, for `jobmeter import` (jsonl)")
    add_filter_options(parser)
    add_store_option(parser)
    options = parser.parse_args(arguments)
    form = _format(options)
    if options.output is not None:
        check_destination(options.output)
    chosen = selection(options)

    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    named = [store.resolve(text) for text in options.runs]
    filters = (options.name, options.status, options.label, options.since, options.until, options.where)
    if named and any(filters):
        raise UsageError("name runs or filter them, not both")

    def rows() -> Iterator[StoredRun]:
        if not named:
            yield from store.runs(chosen)
        for run_id in dict.fromkeys(named):
            yield from store.runs(chosen._replace(where=f'id = "{run_id}"'))

    count = _write(store, rows, form, options)
    if options.output is not None:
        unit_name = "windows" if options.windows and not options.records else "runs"
        warn(f"{options.output}: {count} {unit_name[:-1] if count == 1 else unit_name}")
    return 0


def _format(options: argparse.Namespace) -> str:
    """The format requested, or that of the file's name; UsageError when it does not fit the other options."""
    from jobmeter.exchange.export import FORMATS

    ending = (options.output or "").rpartition(".")[2].lower()
    form: str = options.format or (ending if ending in FORMATS else "jsonl" if options.records else "csv")
    if FORMATS[form].is_binary and options.output is None:
        raise UsageError(f"{form} is binary: name a file with -o FILE")
    if options.records and form != "jsonl":
        raise UsageError(f"--records are written as jsonl, not as {form}")
    return form


def _write(store: Store, rows: Callable[[], Iterator[StoredRun]], form: str, options: argparse.Namespace) -> int:
    """Write the table and return how many rows it has."""
    from jobmeter.exchange import export, tables

    to_write = export.FORMATS[form]

    def table() -> Iterator[TableRow]:
        if options.records:
            yield from _lines(store, rows(), options.windows)
        elif options.windows:
            for journal in _journals(store, rows()):
                yield from tables.window_rows(journal)
        else:
            yield from map(tables.run_row if to_write.holds_lists else tables.flat_row, rows())

    def made() -> Iterator[TableRow]:
        # On a terminal the rows themselves show the progress.
        return table() if options.output is None else counted(table(), options.output)

    def columns() -> list[Column]:
        return tables.window_columns(_journals(store, rows())) if options.windows else tables.run_columns()

    with export.destination(options.output, binary=to_write.is_binary) as file:
        return to_write.write(file, columns, made())


def _journals(store: Store, rows: Iterator[StoredRun]) -> Iterator[Journal]:
    for row in rows:
        yield store.journal(row["id"])


def _lines(store: Store, rows: Iterator[StoredRun], with_windows: bool) -> Iterator[dict[str, Any]]:
    from jobmeter.exchange.records import line_of

    for row in rows:
        journal = store.journal(row["id"])
        record = journal.record or store.record(row["id"])
        yield line_of(record, journal.header.get("measurements", {}), journal.windows if with_windows else None)
