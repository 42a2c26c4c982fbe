"""`jobmeter workflow list`: the workflows that were run."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.cli.shared.tables import print_table
from jobmeter.errors import StoreError
from jobmeter.model import Status
from jobmeter.report.table import local_time
from jobmeter.report.table_layout import Column
from jobmeter.settings import resolve
from jobmeter.workflow.directory import all_runs
from jobmeter.workflow.history import StoredRun, attempts_of

_COLUMNS = (
    Column("workflow_id", essential=True, shortens=True),
    Column("run_id", "count", essential=True),
    Column("state"),
    Column("started", "time"),
    Column("completed", "count"),
    Column("spec", shortens=True),
)


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    store = resolve("store", options.store)
    entries = []
    listed_workflows: set[str] = set()
    for directory in all_runs(store):
        if directory.workflow in listed_workflows and not options.all:
            continue
        listed_workflows.add(directory.workflow)
        try:
            entries.append(_entry(StoredRun(directory, directory.plan(), attempts_of(store, directory, warn))))
        except StoreError as error:
            warn(str(error))
    if options.json:
        print_json(entries)
    elif not entries:
        warn("no workflow was run yet. `jobmeter workflow run SPEC` runs one.")
    else:
        rows = [
            [
                str(entry["workflow_id"]),
                str(entry["run_id"]),
                str(entry["state"]),
                local_time(str(entry["started"])),
                f"{entry['completed']}/{entry['jobs']}",
                str(entry["spec"]),
            ]
            for entry in entries
        ]
        print_table(_COLUMNS, rows)
    return 0


def _entry(stored: StoredRun) -> dict[str, object]:
    status = stored.status()
    return {
        "workflow_id": stored.directory.workflow,
        "name": stored.plan["name"],
        "run_id": stored.directory.run_id,
        "state": status.state,
        "started": stored.plan["started"],
        "jobs": len(status.jobs),
        "completed": status.counts.get(Status.COMPLETED, 0),
        "counts": status.counts,
        "spec": stored.plan["spec"],
    }


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("workflow list", "List the workflows that were run, with how far the newest run of each is.")
    parser.add_argument("--all", action="store_true", help="list every run of each")
    parser.add_argument("--json", action="store_true", help="print an array of objects")
    add_store_option(parser)
    return parser.parse_args(arguments)
