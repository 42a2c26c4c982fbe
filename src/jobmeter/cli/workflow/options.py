"""Options that several workflow commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jobmeter.cli.shared.options import Parser, add_share_option, add_store_option, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.cli.shared.sharing import share
from jobmeter.engines import load_engine
from jobmeter.settings import cpu_number, positive_bytes, positive_whole_number, resolve, whole_number
from jobmeter.workflow.service import WorkflowOptions

_ENGINE_OPTION = "engine_option_"
"""The prefix of an engine's own options in the namespace of parsed options."""


def parse_run_options(parser: Parser, arguments: Sequence[str], *, default_engine: str) -> argparse.Namespace:
    """Add the options of commands that start jobs, with those of the engine that is named, and parse them."""
    add = parser.add_argument
    engine = f"where jobs run (default: {default_engine}; `jobmeter doctor` lists the engines)"
    add("--engine", metavar="NAME", help=engine)
    cpus = option_type("--cpus", cpu_number)
    add("--cpus", metavar="N", type=cpus, help="CPUs that jobs may request together (default: the machine's)")
    memory = option_type("--memory", positive_bytes)
    add("--memory", metavar="SIZE", type=memory, help="memory they may request together (default: the machine's)")
    add("--gpus", metavar="N", type=option_type("--gpus", whole_number), help="GPUs they may request together")
    add("--enforce", action="store_true", help="make what jobs request a hard limit, and end those that exceed it")
    add(
        "--auto-size",
        action="store_true",
        help="request what `jobmeter size` advises; retry with more where that was not enough",
    )
    add("--monitor", action="store_true", help="also watch the cluster: what is reserved there, and what is used")
    add("--no-resource-monitoring", action="store_true", help="measure nothing but time and exit code")
    add_store_option(parser)
    add_share_option(parser)
    add("--quiet", action="store_true", help="print no progress and no summary")
    add_engine_options(parser, arguments)
    return parser.parse_args(arguments)


def add_engine_options(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the engine that the arguments name. Each engine describes its options in its own file."""
    named = Parser("", "")
    named.add_argument("--engine")
    name = named.parse_known_args([word for word in arguments if word not in ("-h", "--help")])[0].engine
    if name is None:
        return
    for option in load_engine(name).options:
        dest = f"{_ENGINE_OPTION}{option.name}"
        parser.add_argument(f"--{option.name}", metavar=option.metavar, dest=dest, help=option.help)


def add_workflow_argument(parser: Parser) -> None:
    parser.add_argument(
        "workflow", nargs="?", metavar="WORKFLOW", help="its id, name or spec (default: the one that was run last)"
    )
    number = option_type("--run-id", positive_whole_number)
    parser.add_argument("--run-id", metavar="N", type=number, help="which of its runs (default: the newest)")


def engine_options(options: argparse.Namespace) -> dict[str, str]:
    """The engine's own options that were given, by name."""
    return {
        name.removeprefix(_ENGINE_OPTION): value
        for name, value in vars(options).items()
        if name.startswith(_ENGINE_OPTION) and value is not None
    }


def workflow_options(options: argparse.Namespace) -> WorkflowOptions:
    """The options that `parse_run_options` parsed, in the form that `workflow.service` takes."""
    store = resolve("store", options.store, warn)
    share(store, options.share_group)
    return WorkflowOptions(
        store=store,
        engine=options.engine,
        engine_options=engine_options(options),
        cpus=options.cpus,
        memory_bytes=options.memory,
        gpus=options.gpus,
        enforce=options.enforce,
        monitoring=not options.no_resource_monitoring,
        redact=resolve("redact", None, warn),
        auto_size=options.auto_size,
        monitor=options.monitor,
    )
