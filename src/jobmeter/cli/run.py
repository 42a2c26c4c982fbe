"""`jobmeter run`: run a command and measure it."""

from __future__ import annotations

import argparse
import os

from jobmeter.cli.shared.measure_options import add_measure_options, measure_options, with_patterns
from jobmeter.cli.shared.options import Parser, option_type, refuse_given
from jobmeter.cli.shared.output import check_report, print_summary, warn, write_report
from jobmeter.errors import OptionRefused, UsageError, quote
from jobmeter.launch.signals import FORWARDED, Forwarder, block
from jobmeter.launch.spawn import LaunchedJob
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Requirement
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.session import Session
from jobmeter.settings import cpu_number, positive_bytes, positive_seconds, resolve, whole_number

if TYPE_CHECKING:
    from jobmeter.launch.capture import Capture

CONTAINER_OPTIONS = (
    "engine", "mount", "env", "workdir", "user", "network", "entrypoint", "pull", "container-name", "tty",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.auto_size:
        from jobmeter.cli import run_auto_size

        check_report(options.report)

        return run_auto_size.main(arguments, options)
    if options.container is not None:
        from jobmeter.cli import run_container

        return run_container.main(options)
    check_report(options.report)
    capture = open_capture(options.capture)
    job_options = JobOptions(
        command=options.command,
        streams=capture.streams if capture else None,
        requirement=Requirement(options.cpus, options.memory, options.runtime, requested_gpus(options.gpus)),
        enforce=options.enforce,
        orphans=resolve("orphans", options.orphans, warn),
        own_network=options.own_network,
    )
    if options.own_network:
        from jobmeter.launch.own_network import check_own_network  # late: few runs need it

        check_own_network()

    def before_exec(launched: LaunchedJob) -> None:
        if capture:
            launched.helpers.append(capture.start())
            capture.release()

    job = LaunchedCommand(job_options, before_exec=before_exec, adopt=True)
    measure = measure_options(options)
    if options.own_network and measure.measurements != ["none"]:
        measure = measure._replace(measurements=with_patterns(measure.measurements, "netns_*"))
    session = Session(job, measure, warn=warn)
    # Signals are blocked until there is a job to forward them to.
    block(FORWARDED)
    Forwarder(job.receive, exit_code=session.exit_code)
    session.start()
    release_streams(options.report)
    record = session.wait()
    if capture:
        capture.finish(wait=not record["provenance"].get("left_running"))
    write_report(options.report, record, session.journal_path)
    if not options.quiet:
        print_summary(record, session.journal_path)
    return session.outcome.shell_code


def requested_gpus(text: str | None) -> int | None:
    """Parse the number of GPUs that a command requests. Its environment names the GPUs that it gets."""
    if text is None:
        return None
    if not text.isdecimal():
        raise UsageError(f"--gpus: {quote(text)} is not a number of GPUs. Only with --container may they be named.")
    return whole_number(text)


def open_capture(directory: str | None) -> Capture | None:
    if directory is None:
        return None
    from jobmeter.launch.capture import Capture  # late: few runs need it

    return Capture(directory)


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
    add("--cpus", metavar="N", type=option_type("--cpus", cpu_number), help="CPUs the job requests")
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
    add(
        "--enforce",
        action="store_true",
        help="make --cpus, --memory and --runtime hard limits, as they always are in a container",
    )
    own_network = (
        "run it in a network namespace of its own, so that its traffic is counted exactly (needs root and slirp4netns)"
    )
    add("--own-network", action="store_true", help=own_network)
    add(
        "--auto-size", action="store_true", help="request what `jobmeter size` advises; with --enforce, retry with more"
    )
    add(
        "--input",
        metavar="FILE",
        action="append",
        default=[],
        help="with --auto-size: a file it reads; may be repeated",
    )
    add(
        "--orphans",
        metavar="HOW",
        help="what to do with processes that outlive the command: leave (default), wait or end",
    )
    add("--metrics", metavar="FILE", help='a JSON file to which the job writes metrics of its own: {"loss": 0.1}')
    add("--capture", metavar="DIR", help="also write stdout and stderr to files in DIR")
    add_container_options(parser)
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the options and the command. Raises OptionRefused for an option that has no effect on this kind of run."""
    options = make_parser().parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if options.container is None:
        refuse_given(options, CONTAINER_OPTIONS, "has no effect without --container IMAGE")
    else:
        refuse_given(options, ["orphans"], "has no effect with --container: a container's processes end with its first")
        refuse_given(options, ["own-network"], "has no effect with --container: use --network")
    if not options.auto_size:
        refuse_given(options, ["input"], "has no effect without --auto-size")
    if (
        options.enforce
        and not options.auto_size
        and (options.cpus, options.memory, options.runtime) == (None, None, None)
    ):
        raise OptionRefused("--enforce: has no effect without --cpus, --memory or --runtime")
    if not options.command and options.container is None:
        raise UsageError("run: no command given. Write: jobmeter run [options] -- COMMAND [ARGUMENT...]")
    return options


def add_container_options(parser: Parser, image: str = "--container") -> None:
    """Add the options of a job in a container; `cli.run_container` reads them."""
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
    add("--gpus", metavar="WHICH", help="GPUs that it requests: a number; in a container also all, or device=ID,ID")
    add(
        "--entrypoint",
        metavar="PROGRAM",
        help="run this program, with the command as its arguments, instead of the image's entry point",
    )
    add("--pull", metavar="WHEN", help="fetch the image when it is missing (default), or never")
    add("--container-name", metavar="NAME", help="the name of the container (default jobmeter-ID)")
    add("-t", "--tty", action="store_true", help=argparse.SUPPRESS)
