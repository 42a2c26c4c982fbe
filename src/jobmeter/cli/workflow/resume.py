"""`jobmeter workflow resume`: run what is missing, changed or failed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import add_run_options, add_workflow_argument, capacity
from jobmeter.cli.workflow.running import run_to_the_end
from jobmeter.errors import UsageError
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.model import Status
from jobmeter.settings import resolve
from jobmeter.workflow.attempts import Attempt, of_row
from jobmeter.workflow.containers import check_containers
from jobmeter.workflow.directory import RunDirectory, StoredPlan, find_run
from jobmeter.workflow.inputs import check_inputs
from jobmeter.workflow.plan import Plan, check_fit, load_plan
from jobmeter.workflow.resume import end_leftovers, reasons_to_run, renumber
from jobmeter.workflow.spec.read.loading import FORMATS


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    store = resolve("store", options.store)
    directory = find_run(store, options.workflow, options.run_id)
    stored = directory.plan()
    plan = _plan(stored, options.workflow)
    there_is = capacity(options)
    check_fit(plan.jobs, *there_is)
    check_inputs(plan)
    check_containers(plan.jobs)
    if not options.dry_run:
        directory.claim()
        _remove_containers(plan)
    before = _attempts(store, directory, tidy=not options.dry_run)
    plan = renumber(plan, _numbers(stored, before))
    reasons = reasons_to_run(plan.jobs, before)
    if options.dry_run:
        _print_reasons(plan, reasons)
        return 0
    if not reasons:
        directory.keep_plan(plan, there_is)  # what was left to do may have left the spec
        if not options.quiet:
            warn(f"workflow {directory.workflow}: all {len(plan.jobs)} jobs are done; nothing is to be run")
        return 0
    done = frozenset(job.number for job in plan.jobs if job.number not in reasons)
    if not options.quiet:
        warn(f"workflow {directory.workflow}: {len(reasons)} of {len(plan.jobs)} jobs to run, {len(done)} are done")
    return run_to_the_end(plan, directory, there_is, options, before=before, done=done)


def _plan(stored: StoredPlan, named: str | None) -> Plan:
    """The plan for the spec as it is now."""
    is_spec = named is not None and named.lower().endswith(tuple(FORMATS)) and os.path.isfile(named)
    path = str(named) if is_spec else stored["spec"]
    if not os.path.exists(path):
        raise UsageError(f"{path}: the spec of this workflow is gone. Name where it is: jobmeter workflow resume SPEC")
    return load_plan(path)


def _numbers(stored: StoredPlan, before: Sequence[Attempt]) -> dict[str, int]:
    """Name → number of every job that ever was in the spec: what another was called is not given to a new one."""
    return {
        **{attempt.name: attempt.number for attempt in before},
        **{job["name"]: job["job_id"] for job in stored["jobs"]},
    }


def _attempts(store: str, directory: RunDirectory, *, tidy: bool) -> list[Attempt]:
    """All attempts so far; with `tidy`, what is left of a runner that was killed is ended."""
    from jobmeter.store import Selection, open_store

    kept = open_store(store, warn)
    mine = Selection(workflow=directory.workflow, workflow_run=directory.run_id)
    attempts = [of_row(row) for row in kept.runs(mine)]
    unended = [attempt.run for attempt in attempts if attempt.status in (Status.LOST, Status.RUNNING)]
    if tidy and unended and (ended := end_leftovers(kept, unended)):
        warn(f"ended what was left of {ended} job{'s' * (ended > 1)} whose runner was killed")
    return attempts


def _remove_containers(plan: Plan) -> None:
    """Remove containers that a runner left which was killed, if there may be any."""
    if any(job.container is not None for job in plan.jobs):
        from jobmeter.launch.container.leftovers import clean

        clean(THIS_MACHINE)


def _print_reasons(plan: Plan, reasons: dict[int, str]) -> None:
    for job in plan.jobs:
        print(f"{job.name}: {reasons.get(job.number, 'done')}")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow resume",
        "Run what is missing of a workflow, what changed (command or inputs) and what failed. "
        "What is done is not run again.",
    )
    add_workflow_argument(parser)
    add_run_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="tell of each job whether and why it would run")
    return parser.parse_args(arguments)
