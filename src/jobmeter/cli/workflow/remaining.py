"""Runs the jobs that an earlier run left, or says why: for `workflow resume` and `workflow run --only-changed`."""

from __future__ import annotations

from jobmeter.cli.shared.output import print_json, print_lines, warn
from jobmeter.cli.workflow.running import run_to_the_end
from jobmeter.workflow.service import Prepared, is_done


def run_remaining(prepared: Prepared, *, dry_run: bool, quiet: bool, as_json: bool = False) -> int:
    """Run the remaining jobs, or print for each job whether and why it would run. Returns the exit code."""
    if dry_run:
        _print_reasons(prepared, as_json=as_json)
        return 0
    if not quiet:
        warn(_what_is_left(prepared))
    return run_to_the_end(prepared, quiet=quiet or is_done(prepared))


def _print_reasons(prepared: Prepared, *, as_json: bool) -> None:
    reasons = prepared.reasons or {}
    jobs = [(job, reasons.get(job.number)) for job in prepared.plan.jobs]
    if as_json:
        print_json([
            {"job_id": job.number, "name": job.name, "done": reason is None, **({"reason": reason} if reason else {})}
            for job, reason in jobs
        ])  # fmt: skip
    else:
        print_lines(f"{job.name}: {reason or 'done'}" for job, reason in jobs)


def _what_is_left(prepared: Prepared) -> str:
    assert prepared.directory is not None
    workflow, jobs, done = prepared.directory.workflow, len(prepared.plan.jobs), len(prepared.done)
    if not prepared.reasons:
        return f"workflow {workflow}: all {jobs} jobs are done; nothing is to be run"
    return f"workflow {workflow}: {jobs - done} of {jobs} jobs to run, {done} are done"
