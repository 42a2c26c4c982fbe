"""What of an earlier run is left to run, and why: for `workflow resume` and `workflow run --only-changed`."""

from __future__ import annotations

from jobmeter.cli.shared.output import print_line, warn
from jobmeter.cli.workflow.running import run_to_the_end
from jobmeter.workflow.service import Prepared, is_done


def run_remaining(prepared: Prepared, *, dry_run: bool, quiet: bool) -> int:
    """Run what is left, or print of each job whether and why it would run. Returns the exit code."""
    if dry_run:
        reasons = prepared.reasons or {}
        for job in prepared.plan.jobs:
            print_line(f"{job.name}: {reasons.get(job.number, 'done')}")
        return 0
    if not quiet:
        warn(_what_is_left(prepared))
    return run_to_the_end(prepared, quiet=quiet or is_done(prepared))


def _what_is_left(prepared: Prepared) -> str:
    assert prepared.directory is not None
    workflow, jobs, done = prepared.directory.workflow, len(prepared.plan.jobs), len(prepared.done)
    if not prepared.reasons:
        return f"workflow {workflow}: all {jobs} jobs are done; nothing is to be run"
    return f"workflow {workflow}: {jobs - done} of {jobs} jobs to run, {done} are done"
