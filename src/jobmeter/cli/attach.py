"""`jobmeter attach`: measure a process that already runs, with its descendants."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobmeter.analyse.headline import CPU_PERCENT
from jobmeter.analyse.headline_memory import MEMORY_MEAN
from jobmeter.cli.shared.measure_options import add_measure_options, measure_options
from jobmeter.cli.shared.options import Parser, option_type, refuse_given, refuse_words
from jobmeter.cli.shared.output import check_report, print_summary, warn, write_report
from jobmeter.cli.shared.progress import progress
from jobmeter.errors import UsageError
from jobmeter.launch.signals import ENDING, Forwarder
from jobmeter.session.process import RunningProcess
from jobmeter.session.session import Session
from jobmeter.settings import positive_whole_number
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.meter.watch import Sample
    from jobmeter.record.types import Record
    from jobmeter.session.contract import JobControl

OPTIONS_OF_RUN = (
    "--cpus", "--memory", "--runtime", "--enforce", "--orphans", "--capture", "-v", "--mount", "-e", "--env", "-w",
    "--workdir", "-u", "--user", "--network", "--gpus", "--entrypoint", "--pull", "--container-name", "-t", "--tty",
    "--own-network", "--metrics", "--auto-size", "--input",
)  # fmt: skip
"""Options of `run` that have no effect on a process that already runs."""


def make_parser() -> Parser:
    parser = Parser("attach", "Measure a running process and its descendants, or a container, until it ends or Ctrl-C.")
    add_measure_options(parser)
    add = parser.add_argument
    add("pid", metavar="PID", nargs="?", type=option_type("PID", process_id), help="the process to measure")
    add("--container", metavar="NAME", help="measure a running container, given by name or id, instead of PID")
    add("--engine", metavar="NAME", help="container runtime: docker, podman or auto (default): the first that answers")
    return parser


def main(arguments: list[str]) -> int:
    refuse_words(arguments, OPTIONS_OF_RUN, "has no effect on what already runs. It is an option of `jobmeter run`.")
    options = make_parser().parse_args(arguments)
    subject = f"process {options.pid}" if options.container is None else f"container {options.container}"
    with progress() as show:
        record, journal_path = _measure(
            options, lambda sample: None if options.quiet else show(_progress_line(subject, sample))
        )
    write_report(options.report, record, journal_path)
    if not options.quiet:
        print_summary(record, journal_path)
    return 0


def _measure(options: argparse.Namespace, on_sample: Callable[[Sample], None]) -> tuple[Record, str | None]:
    """Measure until the job ends or a signal ends the measurement. Returns the record and the path of its journal."""
    session = Session(job_of(options), measure_options(options), warn=warn, on_sample=on_sample)
    check_report(options.report)
    session.prepare()
    Forwarder(
        lambda number, from_terminal: session.stop(),
        ENDING,
        exit_code=lambda: None if session.exit_code() is None else 0,
    )
    session.start()
    return session.wait(), session.journal_path


def _progress_line(subject: str, sample: Sample) -> str:
    """`measuring process 123: 12 s, CPU 98 %, memory 1.2 GiB (Ctrl-C ends the measurement)`."""
    parts = [text(round(sample.seconds), "seconds")]
    for heading, keys, unit in (("CPU", CPU_PERCENT, "percent"), ("memory", MEMORY_MEAN, "bytes")):
        value = next((sample.values[key] for key in keys if isinstance(sample.values.get(key), (int, float))), None)
        if isinstance(value, (int, float)):
            parts.append(f"{heading} {text(value, unit)}")
    return f"measuring {subject}: {', '.join(parts)} (Ctrl-C ends the measurement)"


def job_of(options: argparse.Namespace) -> JobControl:
    """The process or container that the options name."""
    if (options.pid is None) == (options.container is None):
        raise UsageError("attach: name either a process or a container: jobmeter attach PID, or --container NAME")
    if options.container is None:
        refuse_given(options, ["engine"], "has no effect without --container NAME")
        return RunningProcess(options.pid)
    from jobmeter.launch.container.client import runtime_name
    from jobmeter.session.running_container import RunningContainer

    return RunningContainer(options.container, engine=runtime_name(options.engine))


def process_id(word: str) -> int:
    return positive_whole_number(word, "a process id")
