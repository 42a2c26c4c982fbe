"""`jobmeter workflow results`: what each job used, attempt by attempt."""

from __future__ import annotations

import argparse

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.analyse.overuse import is_at_least
from jobmeter.analyse.resource import CPU, MEMORY
from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.cli.shared.tables import print_table
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.exchange.csv_writer import CsvWriter
from jobmeter.model import Quality, Requirement
from jobmeter.report.table_layout import Column
from jobmeter.settings import resolve
from jobmeter.terminal import data_output
from jobmeter.units import text, without_unit
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.history import stored_run

_FIGURES = (
    ("wall_seconds", "seconds"),
    ("memory_peak_bytes", "bytes"),
    ("memory_mean_bytes", "bytes"),
    ("cpu_peak_percent", "percent"),
    ("cpu_mean_percent", "percent"),
)
_COLUMNS = (
    Column("job_id", "count", essential=True),
    Column("name", essential=True, shortens=True),
    Column("attempt", "count", essential=True),
    Column("status"),
    *(Column(without_unit(name), unit) for name, unit in _FIGURES),
    Column("return_code", "count"),
)
_CSV_FIELDS = (*(column.name for column in _COLUMNS[:4]), *(name for name, _ in _FIGURES), "return_code")
"""The fields of the JSON, whose numbers are in base units."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    stored = stored_run(resolve("store", options.store), options.workflow, options.run_id, warn)
    if options.json:
        about = {"workflow_id": stored.directory.workflow, "run_id": stored.directory.run_id}
        print_json({**about, "results": [as_json(each) for each in stored.attempts]})
    elif options.csv:
        writer = CsvWriter(data_output())
        writer.writerow(_CSV_FIELDS)
        writer.writerows([as_json(each).get(name, "") for name in _CSV_FIELDS] for each in stored.attempts)
    else:
        print_table(_COLUMNS, [_row(each) for each in stored.attempts])
    return 0


def as_json(attempt: Attempt) -> dict[str, object]:
    """One attempt with its numbers in base units; what was not measured is absent."""
    entry = attempt._asdict()
    outcome = entry.pop("outcome")
    del entry["fingerprint"]
    entry.update({figure.name: value for figure, value in zip(HEADLINE, entry.pop("figures"))})
    entry["job_id"] = entry.pop("number")
    requirement = {name: entry.pop(name) for name in Requirement._fields}
    entry = {**entry, "status": outcome.status, "return_code": _return_code(attempt), "signal": outcome.signal}
    entry["requirement"] = {name: value for name, value in requirement.items() if value is not None}
    if attempt.figure("cpu_peak_percent") is not None and is_at_least(attempt.as_row(), CPU):
        entry["cpu_peak_quality"] = Quality.AT_LEAST.value
    return {name: value for name, value in entry.items() if value is not None}


def _return_code(attempt: Attempt) -> int | None:
    """The exit code of the job, or 128 + its signal; None if there is neither."""
    outcome = attempt.outcome
    return None if outcome.exit_code is None and outcome.signal is None else outcome.shell_code


def _row(attempt: Attempt) -> list[str]:
    code = _return_code(attempt)
    row = attempt.as_row()
    at_least = {*row.get("at_least", ()), *(resource.used for resource in (CPU, MEMORY) if is_at_least(row, resource))}
    return [
        str(attempt.number),
        attempt.name,
        str(attempt.attempt),
        attempt.status,
        *(("≥ " if name in at_least and name in row else "") + _text(row.get(name), unit) for name, unit in _FIGURES),
        "" if code is None else str(code),
    ]


def _text(value: float | None, unit: str) -> str:
    return "" if value is None else text(value, unit)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("workflow results", "Show what each job of a workflow used, attempt by attempt.")
    add_workflow_argument(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print an object, numbers in base units")
    form.add_argument("--csv", action="store_true", help="print comma-separated values, numbers in base units")
    add_store_option(parser)
    return parser.parse_args(arguments)
