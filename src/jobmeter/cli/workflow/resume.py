"""`jobmeter workflow resume`: run what is missing, changed or failed."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import add_workflow_argument, parse_run_options, workflow_options
from jobmeter.cli.workflow.remaining import run_remaining
from jobmeter.workflow.service import prepare_resume


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    prepared = prepare_resume(
        options.workflow, options.run_id, workflow_options(options), warn, dry_run=options.dry_run
    )
    return run_remaining(prepared, dry_run=options.dry_run, quiet=options.quiet)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow resume",
        "Run what is missing of a workflow, what changed (command or inputs) and what failed. "
        "What is done is not run again.",
    )
    add_workflow_argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="print of each job whether and why it would run")
    return parse_run_options(parser, arguments, default_engine="the one it was run on")
