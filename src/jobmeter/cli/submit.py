"""`jobmeter submit`: send one job to an engine, and return at once."""

from __future__ import annotations

import argparse
import os

from jobmeter.cli.shared.options import Parser, add_share_option, add_store_option, option_type
from jobmeter.cli.shared.output import print_line, warn
from jobmeter.cli.shared.sharing import share
from jobmeter.cli.workflow.options import add_engine_options, engine_options
from jobmeter.engines import DEFAULT
from jobmeter.errors import OptionRefused, UsageError
from jobmeter.model import Requirement
from jobmeter.settings import (
    Configuration,
    cpu_number,
    label,
    positive_bytes,
    positive_seconds,
    whole_number,
)
from jobmeter.workflow.submission import Submission, submit
from jobmeter.working_directory import present_directory


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    settings = Configuration(warn)
    store = settings.resolve("store", options.store)
    share(store, options.share_group)
    submission = Submission(
        command=options.command,
        name=options.name or os.path.basename(options.command[0]),
        directory=present_directory(),
        requirement=Requirement(options.cpus, options.memory, options.runtime, options.gpus),
        enforce=options.enforce,
        retries=options.retry,
        labels=dict(options.label),
        interval=settings.resolve("interval", options.interval),
    )
    submitted = submit(store, submission, options.engine or DEFAULT, engine_options(options))
    print_line(submitted.id)
    if not options.wait:
        warn(f"submitted; to see how it goes: jobmeter workflow status {submitted.id} (or logs, cancel, results)")
        return 0
    try:
        return submitted.wait()
    except KeyboardInterrupt:
        warn(f"the job goes on; to end it: jobmeter workflow cancel {submitted.id}")
        return 130


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "submit",
        "Send a command to an engine as a job, print its id, and return at once. The job is measured as with "
        "`jobmeter run`, and `jobmeter workflow status|logs|cancel|results|resume ID` work on it.",
        usage="jobmeter submit [options] [--] COMMAND [ARGUMENT...]",
    )
    add = parser.add_argument
    add(
        "--engine", metavar="NAME", help=f"where the job runs (default: {DEFAULT}; `jobmeter doctor` lists the engines)"
    )
    add("--name", metavar="NAME", help="what to call the job (default: the command's name)")
    labels = option_type("--label", label)
    add("--label", metavar="KEY=VALUE", action="append", default=[], type=labels, help="a label; may be given again")
    add("--cpus", metavar="N", type=option_type("--cpus", cpu_number), help="CPUs the job requests")
    add("--memory", metavar="SIZE", type=option_type("--memory", positive_bytes), help="memory it requests")
    add("--runtime", metavar="TIME", type=option_type("--runtime", positive_seconds), help="time it requests")
    add("--gpus", metavar="N", type=option_type("--gpus", whole_number), help="GPUs it requests")
    add("--enforce", action="store_true", help="make --cpus, --memory and --runtime hard limits")
    retry = "try again so often when it runs out of memory or time, with a larger request"
    add("--retry", metavar="N", type=option_type("--retry", whole_number), default=0, help=retry)
    add("--interval", metavar="TIME", help="time between samples (default 1s)")
    add("--wait", action="store_true", help="return when the job has ended, with its exit code")
    add_store_option(parser)
    add_share_option(parser)
    add_engine_options(parser, _before_command(arguments))
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        raise UsageError("submit: no command given. Write: jobmeter submit [options] -- COMMAND [ARGUMENT...]")
    if options.enforce and (options.cpus, options.memory, options.runtime) == (None, None, None):
        raise OptionRefused("--enforce: has no effect without --cpus, --memory or --runtime")
    return options


def _before_command(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments
