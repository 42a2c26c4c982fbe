"""`jobmeter run`: run a command and measure it."""

from __future__ import annotations

import argparse
import os
import signal

from jobmeter.cli.shared.measure_options import add_measure_options, measure_options
from jobmeter.cli.shared.options import Parser, option_type, refuse_given
from jobmeter.cli.shared.output import check_report, print_summary, warn, write_report
from jobmeter.errors import OptionRefused, UsageError
from jobmeter.launch.capture import Capture
from jobmeter.launch.signals import FORWARDED, Forwarder
from jobmeter.model import Requirement
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.session import Session
from jobmeter.settings import positive_bytes, positive_number, positive_seconds, resolve

CONTAINER_OPTIONS = (
    "engine", "mount", "env", "workdir", "user", "network", "gpus", "entrypoint", "pull", "container-name", "tty",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.container is not None:
        from jobmeter.cli import run_container

        return run_container.main(options)
    check_report(options.report)
    capture = Capture(options.capture) if options.capture is not None else None
    job_options = JobOptions(
        command=options.command,
        streams=capture.streams if capture else None,
        requirement=Requirement(options.cpus, options.memory, options.runtime),
        enforce=options.enforce,
        orphans=resolve("orphans", options.orphans),
    )
    job = LaunchedCommand(job_options, adopt=True)
    session = Session(job, measure_options(options), warn=warn)
    # Blocked until there is a job to forward them to.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    Forwarder(job.receive)
    session.start()
    if capture:
        capture.start()
    else:
        release_streams(options.report)
    record = session.wait()
    if capture:
        capture.finish(wait=not record["provenance"].get("left_running"))
    write_report(options.report, record)
    if not options.quiet:
        print_summary(record, session.journal_path)
    return session.outcome.shell_code


def release_streams(report: str | None) -> None:
    """Close our stdin and stdout, so that a reader of the job's output sees its end when the job closes it."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0, inheritable=False)
    if report is None or not report.startswith("/dev/"):
        os.dup2(nothing, 1, inheritable=False)


def make_parser() -> Parser:
    parser = Parser(
        "run",
        "Run a command and measure what it and everything it starts use. The exit code is the command's.",
        usage="jobmeter run [options] [--] COMMAND [ARGUMENT...]",
    )
    add = parser.add_argument
    add_measure_options(parser)
    add("--cpus", metavar="N", type=option_type("--cpus", positive_number), help="CPUs the job requests")
    add(
        "--memory",
        metavar="SIZE",
        type=option_type("--memory", positive_bytes),
        help="memory it requests, for example 4g",
    )
    add(
        "--runtime",
        metavar="TIME",
        type=option_type("--runtime", positive_seconds),
        help="time it requests, for example 2h",
    )
    add("--enforce", action="store_true", help="make --cpus, --memory and --runtime hard limits")
    add("--orphans", metavar="HOW", help="processes that it leaves running: leave (default), wait or end")
    add("--capture", metavar="DIR", help="also write stdout and stderr to files in DIR")
    add_container_options(parser)
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options and the command. OptionRefused for one that has no effect on this kind of run."""
    options = make_parser().parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if options.container is None:
        refuse_given(options, CONTAINER_OPTIONS, "has no effect without --container IMAGE")
    else:
        refuse_given(options, ["orphans"], "has no effect with --container: a container's processes end with its first")
    if options.enforce and (options.cpus, options.memory, options.runtime) == (None, None, None):
        raise OptionRefused("--enforce: has no effect without --cpus, --memory or --runtime")
    if not options.command and options.container is None:
        raise UsageError("run: no command given. Write: jobmeter run [options] -- COMMAND [ARGUMENT...]")
    return options


def add_container_options(parser: Parser, image: str = "--container") -> None:
    """The options of a job in a container; `cli.run_container` reads them."""
    add = parser.add_argument_group("in a container").add_argument
    add(image, dest="container", metavar="IMAGE", help="run the command, or the image's own, in a container of IMAGE")
    add("--engine", metavar="NAME", help="container runtime: docker, podman or auto (default): the first that answers")
    add("-v", "--mount", metavar="SOURCE:TARGET[:ro]", action="append", default=[],
        help="a path of this machine, or a volume, in the container; may be given again")  # fmt: skip
    add("-e", "--env", metavar="NAME[=VALUE]", action="append", default=[],
        help="a variable, with the value it has here if none is given; may be given again")  # fmt: skip
    add("-w", "--workdir", metavar="DIR", help="where in the container the command runs")
    add("-u", "--user", metavar="USER", help="the user that it runs as")
    add("--network", metavar="NAME", help="its network: none, host, bridge or the name of one")
    add("--gpus", metavar="WHICH", help="all, a number, or device=ID,ID")
    add("--entrypoint", metavar="PROGRAM", help="the program that gets the command, instead of the image's")
    add("--pull", metavar="WHEN", help="fetch the image when it is missing (default), or never")
    add("--container-name", metavar="NAME", help="the name of the container (default jobmeter-ID)")
    add("-t", "--tty", action="store_true", help=argparse.SUPPRESS)
