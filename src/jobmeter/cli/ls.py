"""`jobmeter ls`: the stored runs, newest first."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.filters import add_filter_options, add_store_option, selection
from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.errors import UsageError
from jobmeter.settings import key_list, resolve, whole_number

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.store import Selection

_DEFAULT_FIELDS = ("id", "name", "status", "started", "wall_seconds")
"""Before the headline figures that are shown by default."""
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
    from jobmeter.store.query.fields import FIELDS, check_field

    if given is None:
        return None
    if given == ["all"]:
        return list(FIELDS)
    for field in given:
        name, _, key = field.partition(".")
        try:
            check_field(name if key and name == "labels" else field)
        except UsageError as error:
            raise UsageError(f"--fields: {error}") from None
    return given


def _default_fields() -> list[str]:
    from jobmeter.analyse.headline_table import HEADLINE

    return [*_DEFAULT_FIELDS, *(figure.name for figure in HEADLINE if figure.in_ls)]


def _unit(field: str) -> str:
    from jobmeter.store.query.fields import FIELDS

    return "text" if "." in field else FIELDS[field].unit


def _chosen(row: StoredRun, fields: list[str]) -> StoredRun:
    """The fields requested; what is not known stays absent."""
    values = {}
    for field in fields:
        name, _, key = field.partition(".")
        value = row.get("labels", {}).get(key) if key else row.get(name)
        if value is not None:
            values[field] = value
    return values


def _print_json(rows: Iterable[StoredRun], fields: list[str] | None) -> None:
    """An array with one run per line, written as they are read: a million of them need no memory."""
    before = "[\n"
    for row in rows:
        sys.stdout.write(before + json.dumps(_chosen(row, fields) if fields else row))
        before = ",\n"
    sys.stdout.write("[]\n" if before == "[\n" else "\n]\n")


def _print_csv(rows: Iterable[StoredRun], fields: list[str] | None) -> None:
    from jobmeter.store.query.fields import FIELDS

    columns = fields or list(FIELDS)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = _chosen(row, columns)
        writer.writerow([_csv_value(values.get(column, "")) for column in columns])


def _csv_value(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _print_table(rows: list[StoredRun], fields: list[str], limit: int | None) -> None:
    from jobmeter.report.table import cell, heading, plain_table, rich_table

    more = limit is not None and len(rows) > limit
    units = [_unit(field) for field in fields]

    def cells() -> Iterator[list[str]]:
        for row in islice(rows, limit):
            yield [cell(row, field, unit) for field, unit in zip(fields, units)]

    if not rows:
        warn("no runs found")
    elif sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(rich_table(fields, units, cells()))
    else:
        print("\n".join(plain_table([heading(field) for field in fields], units, cells())))
    if more:
        warn(f"there are more runs than these {limit}; --limit 0 shows all")
