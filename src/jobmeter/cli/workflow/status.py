"""`jobmeter workflow status`: how far a workflow is."""

from __future__ import annotations

import argparse
import json

from jobmeter.cli.shared.filters import add_store_option
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.tables import print_table
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.model import Status
from jobmeter.settings import resolve
from jobmeter.units import text
from jobmeter.workflow.history import StoredRun, stored_run
from jobmeter.workflow.status import JobStatus, WorkflowStatus

_SHOWN = 40


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    stored = stored_run(resolve("store", options.store), options.workflow, options.run_id, warn)
    status = stored.status()
    if options.json:
        print(json.dumps(as_json(stored, status), indent=2))
    else:
        _print(stored, status, everything=options.all)
    return 0


def as_json(stored: StoredRun, status: WorkflowStatus) -> dict[str, object]:
    runner = stored.directory.runner()
    return {
        "workflow_id": stored.directory.workflow,
        "name": stored.plan["name"],
        "run_id": stored.directory.run_id,
        "state": status.state,
        "spec": stored.plan["spec"],
        "started": stored.plan["started"],
        "logs": stored.directory.logs,
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
    counts = ", ".join(f"{number} {name}" for name, number in status.counts.items())
    runner = stored.directory.runner()
    who = f" (process {runner.pid} on {runner.host})" if status.being_run and runner else ""
    plan, directory = stored.plan, stored.directory
    print(f"{plan['name']}, run {directory.run_id}: {status.state}{who}: {counts} of {len(status.jobs)} jobs")
    print(f"spec {plan['spec']}")
    print(f"logs {directory.logs}")
    # Of many jobs, those that a person can do something about.
    notable = [job for job in status.jobs if job.status not in (Status.COMPLETED, "waiting")]
    shown = status.jobs if everything or len(status.jobs) <= _SHOWN else notable[:_SHOWN]
    if shown:
        print()
        rows = [_row(job) for job in shown]
        headings = ("id", "job", "status", "attempt", "time", "reason")
        units = ("count", "text", "text", "count", "seconds", "text")
        print_table(headings, units, rows, may_be_cut=("job", "reason"))
    if len(shown) < len(status.jobs):
        print(f"\n{len(status.jobs) - len(shown)} more jobs; --all shows them")
    if not status.being_run and status.state != "completed":
        print(f"\n`jobmeter workflow resume {stored.directory.workflow}` runs what is left.")


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
    parser = Parser("workflow status", "Tell how far a workflow is: what ran, what runs, what is blocked and why.")
    add_workflow_argument(parser)
    parser.add_argument("--all", action="store_true", help="list every job, however many")
    parser.add_argument("--json", action="store_true", help="print an object with all of it")
    add_store_option(parser)
    return parser.parse_args(arguments)
