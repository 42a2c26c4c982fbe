"""`jobmeter ls`: the stored runs, newest first."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from jobmeter.byte_text import json_text
from jobmeter.cli.shared.filters import add_filter_options, selection
from jobmeter.cli.shared.options import Parser, add_store_option, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.errors import UsageError
from jobmeter.exchange.csv_writer import CsvWriter
from jobmeter.settings import key_list, resolve, whole_number
from jobmeter.terminal import data_output

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.report.table_layout import Column
    from jobmeter.store import Selection

_DEFAULT_FIELDS = ("id", "name", "status", "wall_seconds")
"""The first columns that are shown by default; headline figures and `started` follow."""
_TEXTS = ("name", "workflow", "workflow_job", "labels", "metrics", "host", "cwd", "command", "at_least", "enforced")
"""Fields that are shortened where the terminal is too narrow; all others are whole."""
_SHOWN = 50
"""Runs in a table when no limit is given; a script that requests JSON or CSV gets all."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)

    from jobmeter.store import open_store

    fields = _check_fields(options.fields)
    limit = _limit(options)
    chosen = _selection(options)
    rows = open_store(resolve("store", options.store), warn).runs(
        chosen._replace(limit=limit if limit is None else limit + 1)
    )
    if options.json:
        _print_json(islice(rows, limit), fields)
    elif options.csv:
        _print_csv(islice(rows, limit), fields)
    else:
        _print_table(list(rows), fields or _default_fields(), limit)
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("ls", "List the stored runs, newest first.")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="runs of this name, or a glob such as 'train*'")
    add_filter_options(parser)
    add("--fields", metavar="FIELDS", type=key_list, help="what to show, separated by commas; `all` for every field")
    add("--sort", metavar="FIELD", default="started", help="largest or newest first (default: started)")
    add("--reverse", action="store_true", help="smallest or oldest first")
    limit = option_type("--limit", whole_number)
    add("--limit", metavar="N", type=limit, help=f"show at most N; 0 for all (default: {_SHOWN} in a table)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print an array of objects, all fields that are known")
    form.add_argument("--csv", action="store_true", help="print comma-separated values, all fields")
    add_store_option(parser)
    return parser.parse_args(arguments)


def _limit(options: argparse.Namespace) -> int | None:
    if options.limit is None:
        return None if options.json or options.csv else _SHOWN
    return int(options.limit) or None


def _selection(options: argparse.Namespace) -> Selection:
    from jobmeter.store.query.fields import check_field

    try:
        unit = check_field(options.sort).unit
    except UsageError as error:
        raise UsageError(f"--sort: {error}") from None
    # Texts are sorted from A on, numbers and times from the largest on.
    descending = (unit not in ("text", "json")) != options.reverse
    names = [*options.name, *options.names]
    return selection(options)._replace(names=names, sort=options.sort, descending=descending)


def _check_fields(given: list[str] | None) -> list[str] | None:
    """The full names of the requested fields; None if none are given. Raises UsageError for an unknown one."""
    from jobmeter.store.query.fields import FIELDS, full_name

    if given is None:
        return None
    if given == ["all"]:
        return list(FIELDS)
    try:
        return [field if field.startswith("labels.") else full_name(field) for field in given]
    except UsageError as error:
        raise UsageError(f"--fields: {error}") from None


def _default_fields() -> list[str]:
    from jobmeter.analyse.headline_table import HEADLINE, memory_first

    figures = memory_first(figure for figure in HEADLINE if figure.in_ls)
    return [*_DEFAULT_FIELDS, *(figure.name for figure in figures), "started"]


def _unit(field: str) -> str:
    from jobmeter.store.query.fields import FIELDS

    return "text" if "." in field else FIELDS[field].unit


def _chosen(row: StoredRun, fields: list[str]) -> StoredRun:
    """The requested fields of a run; unknown values are absent."""
    values = {}
    for field in fields:
        name, _, key = field.partition(".")
        value = row.get("labels", {}).get(key) if key else row.get(name)
        if value is not None:
            values[field] = value
    return values


def _print_json(rows: Iterable[StoredRun], fields: list[str] | None) -> None:
    """Print an array with one run per line. Each is written as it is read, so that a million of them need no memory."""
    before = "[\n"
    for row in rows:
        sys.stdout.write(before + json_text(_chosen(row, fields) if fields else row))
        before = ",\n"
    sys.stdout.write("[]\n" if before == "[\n" else "\n]\n")


def _print_csv(rows: Iterable[StoredRun], fields: list[str] | None) -> None:
    from jobmeter.store.query.fields import FIELDS

    columns = fields or list(FIELDS)
    writer = CsvWriter(data_output())
    writer.writerow(columns)
    for row in rows:
        values = _chosen(row, columns)
        writer.writerow([_csv_value(values.get(column, "")) for column in columns])


def _csv_value(value: Any) -> Any:
    return json_text(value) if isinstance(value, (dict, list)) else value


def _print_table(rows: list[StoredRun], fields: list[str], limit: int | None) -> None:
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.table import cell

    if not rows:
        warn("no runs found")
        return
    columns = [_column(field) for field in fields]
    cells = [[cell(row, field, column.unit) for field, column in zip(fields, columns)] for row in islice(rows, limit)]
    print_table(columns, cells, elsewhere="--fields selects, a pipe has all")
    if limit is not None and len(rows) > limit:
        warn(f"there are more runs than these {limit}; --limit 0 shows all")


def _column(field: str) -> Column:
    from jobmeter.report.table_layout import Column
    from jobmeter.units import without_unit

    is_text = field in _TEXTS or "." in field
    return Column(without_unit(field), _unit(field), essential=field in ("id", "name"), shortens=is_text)
