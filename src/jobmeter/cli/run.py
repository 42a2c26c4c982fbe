"""`jobmeter run`: run a command and measure it."""

from __future__ import annotations

import argparse
import os
import signal
import time

from jobmeter.cli.shared.measure_options import add_measure_options, measure_options
from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import check_report, tell_summary, warn, write_report
from jobmeter.errors import UsageError
from jobmeter.launch.capture import Capture
from jobmeter.launch.signals import FORWARDED, Forwarder
from jobmeter.model import Requirement
from jobmeter.session.run import JobOptions, Session
from jobmeter.settings import positive_bytes, positive_number, positive_seconds, resolve


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.container is not None:
        from jobmeter.cli import run_container

        return run_container.main(options)
    check_report(options.report)
    capture = Capture(options.capture) if options.capture is not None else None
    job = JobOptions(
        command=options.command,
        streams=capture.streams if capture else None,
        requirement=Requirement(options.cpus, options.memory, options.runtime),
        enforce=options.enforce,
        orphans=resolve("orphans", options.orphans),
    )
    session = Session(job, measure_options(options), warn=warn, adopt=True)
    # Held back until there is a job to hand them to.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    Forwarder(session.receive)
    session.start()
    if capture:
        capture.start()
    else:
        let_go_of_streams(options.report)
    record = session.wait()
    if capture:
        capture.finish(wait=not record["provenance"].get("left_running"))
    record["provenance"]["meter_cpu_seconds"] = round(time.process_time(), 4)
    write_report(options.report, record)
    if not options.quiet:
        tell_summary(record, session.journal_path)
    return session.outcome.shell_code


def let_go_of_streams(report: str | None) -> None:
    """Leave stdin and stdout to the job alone: who reads them sees their end when the job closes them."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0, inheritable=False)
    if report is None or not report.startswith("/dev/"):
        os.dup2(nothing, 1, inheritable=False)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "run",
        "Run a command and measure what it and everything it starts use. The exit code is the command's.",
        usage="jobmeter run [options] [--] COMMAND [ARGUMENT...]",
    )
    add = parser.add_argument
    add_measure_options(parser)
    add("--cpus", metavar="N", type=option_type("--cpus", positive_number), help="CPUs the job requests")
    add("--memory", metavar="SIZE", type=option_type("--memory", positive_bytes), help="memory it requests, as 4g")
    add("--runtime", metavar="TIME", type=option_type("--runtime", positive_seconds), help="time it requests, as 2h")
    add("--enforce", action="store_true", help="make the requests hard limits, and end the job that exceeds one")
    add("--orphans", metavar="HOW", help="what it leaves running when it ends: leave (default), wait or end")
    add("--capture", metavar="DIR", help="also write stdout and stderr to files in DIR")
    add_container_options(parser)
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if options.container is None:
        _refuse_container_options(options)
    if not options.command and options.container is None:
        raise UsageError("run: no command given. Write: jobmeter run [options] -- COMMAND [ARGUMENT...]")
    return options


def add_container_options(parser: Parser, image: str = "--container") -> None:
    """The options of a job in a container; what they mean is known to `cli.run_container`."""
    add = parser.add_argument_group("in a container").add_argument
    add(image, dest="container", metavar="IMAGE", help="run the command, or the image's own, in a container of IMAGE")
    add("--engine", metavar="NAME", help="docker, podman or auto (default): the first that answers")
    add("-v", "--mount", metavar="SOURCE:TARGET[:ro]", action="append", default=[],
        help="a path of this machine, or a volume, in the container; may be given again")  # fmt: skip
    add("-e", "--env", metavar="NAME[=VALUE]", action="append", default=[],
        help="a variable, with the value it has here if none is given; may be given again")  # fmt: skip
    add("-w", "--workdir", metavar="DIR", help="where in the container the command runs")
    add("-u", "--user", metavar="USER", help="whom it runs as")
    add("--network", metavar="NAME", help="its network: none, host, bridge or the name of one")
    add("--gpus", metavar="WHICH", help="all, a number, or device=ID,ID")
    add("--entrypoint", metavar="PROGRAM", help="the program that gets the command, in place of the image's")
    add("--pull", metavar="WHEN", help="fetch the image when it is missing (default), or never")
    add("--container-name", metavar="NAME", help="what the engine calls the container (default jobmeter-ID)")
    add("-t", "--tty", action="store_true", help=argparse.SUPPRESS)


def _refuse_container_options(options: argparse.Namespace) -> None:
    only = "engine mount env workdir user network gpus entrypoint pull container-name tty"
    for name in only.split():
        if getattr(options, name.replace("-", "_")):
            raise UsageError(f"--{name}: means something only with --container IMAGE")
