"""`jobmeter workflow results`: what each job used, attempt by attempt."""

from __future__ import annotations

import argparse
import csv
import json
import sys

from jobmeter.analyse.overuse import is_at_least
from jobmeter.analyse.resource import CPU, MEMORY, Resource
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.tables import print_table
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.model import Quality
from jobmeter.settings import resolve
from jobmeter.units import text
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.history import stored_run

_GB = 2.0**30
_COLUMNS = (
    ("Job ID", "count"),
    ("Job Name", "text"),
    ("Attempt", "count"),
    ("Status", "text"),
    ("Return Code", "count"),
    ("Wall Time", "seconds"),
    ("Peak CPU %", "percent"),
    ("Avg CPU %", "percent"),
    ("Peak Mem (GB)", "bytes"),
    ("Avg Mem (GB)", "bytes"),
)


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    stored = stored_run(resolve("store", options.store), options.workflow, options.run_id, warn)
    headings, units = zip(*_COLUMNS)
    if options.json:
        about = {"workflow_id": stored.directory.workflow, "run_id": stored.directory.run_id}
        print(json.dumps({**about, "results": [as_json(each) for each in stored.attempts]}, indent=2))
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows(_row(each, plain=True) for each in stored.attempts)
    else:
        print_table(headings, units, [_row(each) for each in stored.attempts], may_be_cut=("Job Name",))
    return 0


def as_json(attempt: Attempt) -> dict[str, object]:
    """One attempt with its numbers in base units; what was not measured is absent."""
    entry = attempt._asdict()
    outcome = entry.pop("outcome")
    del entry["fingerprint"]
    entry["job_id"] = entry.pop("number")
    asked = {name: entry.pop(name) for name in ("cpus", "memory_bytes", "runtime_seconds")}
    entry = {**entry, "status": outcome.status, "return_code": _return_code(attempt), "signal": outcome.signal}
    entry["requirement"] = {name: value for name, value in asked.items() if value is not None}
    if attempt.cpu_peak_percent is not None and is_at_least(attempt.as_row(), CPU):
        entry["cpu_peak_quality"] = Quality.AT_LEAST.value
    return {name: value for name, value in entry.items() if value is not None}


def _return_code(attempt: Attempt) -> int | None:
    """The job's own, or 128 + its signal; None while it has none."""
    outcome = attempt.outcome
    return None if outcome.exit_code is None and outcome.signal is None else outcome.shell_code


def _row(attempt: Attempt, *, plain: bool = False) -> list[str]:
    code = _return_code(attempt)
    wall = attempt.wall_seconds
    return [
        str(attempt.number),
        attempt.name,
        str(attempt.attempt),
        attempt.status,
        "" if code is None else str(code),
        "" if wall is None else str(wall) if plain else text(wall, "seconds"),
        _least(attempt, CPU, plain) + _number(attempt.cpu_peak_percent, 1.0, 1),
        _number(attempt.cpu_mean_percent, 1.0, 1),
        _least(attempt, MEMORY, plain) + _number(attempt.memory_peak_bytes, _GB, 3),
        _number(attempt.memory_mean_bytes, _GB, 3),
    ]


def _least(attempt: Attempt, resource: Resource, plain: bool) -> str:
    """What is plain is for programs, and a number."""
    row = attempt.as_row()
    return "≥ " if not plain and resource.used in row and is_at_least(row, resource) else ""


def _number(value: float | None, unit: float, digits: int) -> str:
    return "" if value is None else f"{value / unit:.{digits}f}"


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow results", "Tell what each job of a workflow used, attempt by attempt. A GB is 2^30 bytes."
    )
    add_workflow_argument(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print an object, numbers in base units")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    parser.add_argument("--store", metavar="DIR", help="where runs are kept (default: the XDG data directory)")
    return parser.parse_args(arguments)
