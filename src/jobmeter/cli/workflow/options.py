"""Options that several of the workflow's commands share."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.settings import positive_bytes, positive_number, positive_whole_number, whole_number
from jobmeter.workflow.capacity import Capacity, machine_capacity


def add_run_options(parser: Parser) -> None:
    """The options of commands that start jobs."""
    add = parser.add_argument
    cpus = option_type("--cpus", positive_number)
    add("--cpus", metavar="N", type=cpus, help="CPUs that jobs may ask for together (default: the machine's)")
    memory = option_type("--memory", positive_bytes)
    add("--memory", metavar="SIZE", type=memory, help="memory they may ask for together (default: the machine's)")
    add("--gpus", metavar="N", type=option_type("--gpus", whole_number), help="GPUs they may ask for together")
    add("--enforce", action="store_true", help="make what jobs ask for a limit, and end those that exceed it")
    add("--no-resource-monitoring", action="store_true", help="measure nothing but time and exit code")
    add("--store", metavar="DIR", help="where runs are stored (default: the XDG data directory)")
    add("--quiet", action="store_true", help="print no progress and no summary")


def add_workflow_argument(parser: Parser) -> None:
    parser.add_argument(
        "workflow", nargs="?", metavar="WORKFLOW", help="its id, name or spec (default: the one that was run last)"
    )
    number = option_type("--run-id", positive_whole_number)
    parser.add_argument("--run-id", metavar="N", type=number, help="which of its runs (default: the newest)")


def capacity(options: argparse.Namespace) -> Capacity:
    """What the jobs may ask for together: as given, else what this machine allows."""
    return machine_capacity(options.cpus, options.memory, options.gpus)
