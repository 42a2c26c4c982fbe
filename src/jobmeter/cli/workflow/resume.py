"""`jobmeter workflow resume`: run what is missing, changed or failed."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import add_workflow_argument, parse_run_options, workflow_options
from jobmeter.cli.workflow.running import run_to_the_end
from jobmeter.workflow.service import Prepared, is_done, prepare_resume


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    prepared = prepare_resume(
        options.workflow, options.run_id, workflow_options(options), warn, dry_run=options.dry_run
    )
    if options.dry_run:
        reasons = prepared.reasons or {}
        for job in prepared.plan.jobs:
            print(f"{job.name}: {reasons.get(job.number, 'done')}")
        return 0
    if not options.quiet:
        warn(_what_is_left(prepared))
    return run_to_the_end(prepared, quiet=options.quiet or is_done(prepared))


def _what_is_left(prepared: Prepared) -> str:
    assert prepared.directory is not None
    workflow, jobs, done = prepared.directory.workflow, len(prepared.plan.jobs), len(prepared.done)
    if not prepared.reasons:
        return f"workflow {workflow}: all {jobs} jobs are done; nothing is to be run"
    return f"workflow {workflow}: {jobs - done} of {jobs} jobs to run, {done} are done"


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow resume",
        "Run what is missing of a workflow, what changed (command or inputs) and what failed. "
        "What is done is not run again.",
    )
    add_workflow_argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="print of each job whether and why it would run")
    return parse_run_options(parser, arguments, default_engine="the one it was run on")
