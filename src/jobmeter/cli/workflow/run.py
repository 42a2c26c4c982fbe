"""`jobmeter workflow run`: run the jobs of a spec, each as soon as it may."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import add_run_options, capacity
from jobmeter.cli.workflow.running import run_to_the_end
from jobmeter.errors import UsageError
from jobmeter.model import workflow_id
from jobmeter.settings import resolve
from jobmeter.workflow.containers import check_containers
from jobmeter.workflow.directory import RunDirectory, new_run, run_ids
from jobmeter.workflow.inputs import check_inputs
from jobmeter.workflow.plan import Plan, check_fit, load_plan


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    plan = load_plan(options.spec)
    there_is = capacity(options)
    check_fit(plan.jobs, *there_is)
    check_inputs(plan)
    check_containers(plan.jobs)
    if options.dry_run:
        from jobmeter.cli.workflow.dry_run import print_plan, print_plan_json

        (print_plan_json if options.json else print_plan)(plan, there_is)
        return 0
    store = resolve("store", options.store)
    if not options.quiet:
        _tell_other_spec(store, plan)
    directory = new_run(store, plan.name)
    return run_to_the_end(plan, directory, there_is, options)


def _tell_other_spec(store: str, plan: Plan) -> None:
    """Workflows of one name are one, and its history that of both."""
    workflow = workflow_id(plan.name)
    runs = run_ids(store, workflow)
    if runs and (before := RunDirectory(store, workflow, runs[-1]).plan()["spec"]) != plan.path:
        warn(f"the last run of workflow {plan.name} was of {before}: name one of them otherwise to keep them apart")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow run",
        "Run the jobs of a spec, each as soon as what it needs is done and it fits the machine. "
        "Exit code 0 when all completed, 1 when any failed.",
    )
    parser.add_argument("spec", metavar="SPEC", help="a file in YAML, JSON or TOML")
    add_run_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the plan and start nothing")
    parser.add_argument("--json", action="store_true", help="with --dry-run: print the plan as an object")
    options = parser.parse_args(arguments)
    if options.json and not options.dry_run:
        raise UsageError("--json goes with --dry-run. `jobmeter workflow results --json` tells what the jobs used.")
    return options
