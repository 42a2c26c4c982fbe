"""`jobmeter workflow run`: runs the jobs of a spec, each as soon as what it needs is done and it fits the machine."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import parse_run_options, workflow_options
from jobmeter.cli.workflow.remaining import run_remaining
from jobmeter.cli.workflow.running import run_to_the_end
from jobmeter.engines import DEFAULT
from jobmeter.errors import UsageError
from jobmeter.session.measuring import ignore
from jobmeter.workflow.service import claim, prepare_run


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    talks = not (options.quiet or options.dry_run)
    prepared = prepare_run(
        options.spec,
        workflow_options(options),
        warn if talks else ignore,
        only_changed=options.only_changed,
        dry_run=options.dry_run,
    )
    if prepared.reasons is not None:
        return run_remaining(prepared, dry_run=options.dry_run, quiet=options.quiet, as_json=options.json)
    if options.dry_run:
        from jobmeter.cli.workflow.dry_run import print_plan, print_plan_json

        (print_plan_json if options.json else print_plan)(prepared.plan, prepared.capacity)
        return 0
    return run_to_the_end(claim(prepared), quiet=options.quiet)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow run",
        "Run the jobs of a spec, each as soon as what it needs is done and it fits the machine. "
        "Exit code 0 when all completed, 1 when any failed.",
    )
    parser.add_argument("spec", metavar="SPEC", help="a file in YAML, JSON, JSON5, TOML or KDL")
    parser.add_argument(
        "--only-changed",
        action="store_true",
        help="go on with the newest run, if there is one: skip what is up to date",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and start nothing")
    parser.add_argument("--json", action="store_true", help="with --dry-run: print the plan as an object")
    options = parse_run_options(parser, arguments, default_engine=DEFAULT)
    if options.json and not options.dry_run:
        raise UsageError("--json goes with --dry-run. `jobmeter workflow results --json` prints what the jobs used.")
    return options
