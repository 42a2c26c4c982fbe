"""`jobmeter workflow status`: how far a workflow is."""

from __future__ import annotations

import argparse
import sys
import time

from jobmeter.byte_text import to_text
from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import print_json, print_line, print_lines, warn
from jobmeter.cli.shared.sentences import print_sentences
from jobmeter.cli.shared.tables import print_table
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.model import Status
from jobmeter.report.table import local_time
from jobmeter.report.table_layout import Column
from jobmeter.settings import resolve
from jobmeter.times import utc
from jobmeter.units import text
from jobmeter.workflow.history import StoredRun, stored_run
from jobmeter.workflow.status import JobStatus, WorkflowStatus

_SHOWN = 40
_COLUMNS = (
    Column("job_id", "count", essential=True),
    Column("name", essential=True, shortens=True),
    Column("status", essential=True),
    Column("attempt", "count"),
    Column("wall", "seconds"),
    Column("reason", shortens=True),
)


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    stored = stored_run(resolve("store", options.store), options.workflow, options.run_id, warn)
    if options.watch:
        from jobmeter.cli.workflow.watch import print_changes, show_until_end  # late: it loads rich

        if options.json or not sys.stdout.isatty():
            print_changes(stored, _print_json_line if options.json else _print_change)
            return 0
        stored = show_until_end(stored)
    status = stored.status()
    if options.json:
        print_json(as_json(stored, status))
    else:
        _print(stored, status, everything=options.all)
    return 0


def _print_change(stored: StoredRun) -> None:
    print_line(f"{local_time(utc(time.time()))} {_in_a_line(stored, stored.status())}")


def _print_json_line(stored: StoredRun) -> None:
    print_json(as_json(stored, stored.status()), indent=None)


def _in_a_line(stored: StoredRun, status: WorkflowStatus) -> str:
    counts = ", ".join(f"{number} {name}" for name, number in status.counts.items())
    runner = stored.directory.runner()
    who = f" (process {runner.pid} on {runner.host})" if status.being_run and runner else ""
    name, run_id = stored.plan["name"], stored.directory.run_id
    return f"{name}, run {run_id}: {status.state}{who}: {counts} of {len(status.jobs)} jobs"


def as_json(stored: StoredRun, status: WorkflowStatus) -> dict[str, object]:
    runner = stored.directory.runner()
    return {
        "workflow_id": stored.directory.workflow,
        "name": stored.plan["name"],
        "run_id": stored.directory.run_id,
        "state": status.state,
        "spec": stored.plan["spec"],
        "started": stored.plan["started"],
        "logs": to_text(stored.directory.logs),
        **({"runner": runner._asdict()} if status.being_run and runner else {}),
        "counts": status.counts,
        "jobs": [_job_json(job) for job in status.jobs],
    }


def _job_json(job: JobStatus) -> dict[str, object]:
    entry: dict[str, object] = {"job_id": job.number, "name": job.name, "status": job.status}
    if job.reason:
        entry["reason"] = job.reason
    if job.attempt is not None:
        entry.update(attempt=job.attempt.attempt, run=job.attempt.run)
        if job.attempt.wall_seconds is not None:
            entry["wall_seconds"] = job.attempt.wall_seconds
    return entry


def _print(stored: StoredRun, status: WorkflowStatus, *, everything: bool) -> None:
    print_sentences([_in_a_line(stored, status)])
    print_lines([f"spec {stored.plan['spec']}", f"logs {stored.directory.logs}"])  # not wrapped: they can be copied
    # Of many jobs, neither completed nor waiting ones are shown: they need no attention.
    notable = [job for job in status.jobs if job.status not in (Status.COMPLETED, "waiting")]
    shown = status.jobs if everything or len(status.jobs) <= _SHOWN else notable[:_SHOWN]
    if shown:
        print_line()
        rows = [_row(job) for job in shown]
        print_table(_COLUMNS, rows)
    if len(shown) < len(status.jobs):
        print_line()
        print_line(f"{len(status.jobs) - len(shown)} more jobs; --all shows them")
    if not status.being_run and status.state != "completed":
        print_line()
        print_line(f"`jobmeter workflow resume {stored.directory.workflow}` runs what is left.")


def _row(job: JobStatus) -> list[str]:
    attempt = job.attempt
    wall = attempt.wall_seconds if attempt is not None else None
    return [
        str(job.number),
        job.name,
        job.status,
        "" if attempt is None else str(attempt.attempt),
        "" if wall is None else text(wall, "seconds"),
        job.reason,
    ]


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("workflow status", "Show how far a workflow is: what ran, what runs, what is blocked and why.")
    add_workflow_argument(parser)
    parser.add_argument("--all", action="store_true", help="list every job, however many")
    watch = "show it until the workflow ends; in a pipe, a line for each change"
    parser.add_argument("--watch", action="store_true", help=watch)
    parser.add_argument("--json", action="store_true", help="print an object with all of it")
    add_store_option(parser)
    return parser.parse_args(arguments)
