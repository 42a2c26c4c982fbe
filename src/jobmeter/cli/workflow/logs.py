"""`jobmeter workflow logs`: what a job wrote, also while it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from jobmeter.cli.shared.job_output import JobOutput
from jobmeter.cli.shared.options import Parser, add_store_option, option_type, refuse_given
from jobmeter.cli.shared.output import print_lines, warn
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.errors import UsageError
from jobmeter.settings import positive_whole_number, resolve, whole_number
from jobmeter.workflow.directory import workflows
from jobmeter.workflow.find_job import JobName, find_job, jobs_of
from jobmeter.workflow.history import StoredRun, stored_run
from jobmeter.workflow.job_log import STDERR, STDOUT, Piece, attempt_log, follow_log, logged_jobs


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    stored, job = _find(options)
    if job is None:
        options_of_one = ("follow", "attempt", "lines", "stdout", "stderr")
        refuse_given(options, options_of_one, "of which job? `jobmeter workflow logs` lists those that have output")
        _list(stored)
        return 0
    streams = [STDOUT] * (not options.stderr) + [STDERR] * (not options.stdout)
    if options.follow:

        def on_attempt(number: int) -> None:
            if number > 1 and options.attempt is None and sys.stderr and sys.stderr.isatty():
                warn(f"{job.name}, attempt {number}:")

        _copy(follow_log(stored, job, options.attempt, streams, options.lines, on_attempt))
    else:
        log = attempt_log(stored, job, options.attempt, streams, options.lines)
        _copy(log.read())
        log.close()
    return 0


def _find(options: argparse.Namespace) -> tuple[StoredRun, JobName | None]:
    """The run of the workflow, and the job; None for the job if none is named and the workflow has several."""
    store = resolve("store", options.store)
    if options.job is not None and options.workflow is None and options.job in workflows(store):
        # A single name is that of a workflow, unless the last workflow has a job of this name.
        last = stored_run(store, None, None, warn)
        if not any(job.name == options.job for job in jobs_of(last.plan)):
            options.job, options.workflow = None, options.job
    stored = stored_run(store, options.workflow, options.run_id, warn)
    if options.job is not None:
        return stored, find_job(stored.plan, options.job)
    jobs = jobs_of(stored.plan)
    return stored, jobs[0] if len(jobs) == 1 else None


def _list(stored: StoredRun) -> None:
    """List the jobs that have output. Raises UsageError if none has any."""
    logged = logged_jobs(stored.directory)
    jobs = [job for job in jobs_of(stored.plan) if job.name in logged]
    workflow = stored.directory.workflow
    if not jobs:
        raise UsageError(f"no job of workflow {workflow} has started yet, so there is no output")
    width = len(str(jobs[-1].number))
    print_lines(f"{job.number:>{width}}  {job.name}" for job in jobs)
    warn(f"these jobs of workflow {workflow} have output. Name one: jobmeter workflow logs JOB {workflow}")


def _copy(pieces: Iterable[Piece]) -> None:
    # `sys.stderr` is None if our caller closed it.
    outputs = {number: JobOutput(file) for number, file in ((STDOUT, sys.stdout), (STDERR, sys.stderr)) if file}
    try:
        for stream, content in pieces:
            if stream in outputs:
                outputs[stream].write(content)
    finally:
        for output in outputs.values():
            output.end()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow logs",
        "Print what a job wrote: its stdout to stdout, its stderr to stderr, of its last attempt. Without JOB, list "
        "the jobs that have output, or print that of the only job.",
    )
    add = parser.add_argument
    add("job", nargs="?", metavar="JOB", help="a job by number or name")
    add_workflow_argument(parser)
    add("-f", "--follow", action="store_true", help="wait for more, and for the job to start, until it has ended")
    attempt = option_type("--attempt", positive_whole_number)
    add("--attempt", metavar="N", type=attempt, help="of which attempt (default: the last)")
    lines = option_type("--lines", whole_number)
    add("-n", "--lines", metavar="N", type=lines, help="begin with the last N lines of each stream")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--stdout", action="store_true", help="its stdout alone")
    only.add_argument("--stderr", action="store_true", help="its stderr alone")
    add_store_option(parser)
    return parser.parse_args(arguments)
