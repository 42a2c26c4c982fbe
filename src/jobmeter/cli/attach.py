"""`jobmeter attach`: measure a process that already runs, with its descendants."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobmeter.cli.shared.measure_options import add_measure_options, measure_options
from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import check_report, tell_summary, warn, write_report
from jobmeter.errors import UsageError
from jobmeter.launch.signals import ENDING, Forwarder
from jobmeter.session.attach import Attachment
from jobmeter.settings import positive_whole_number

if TYPE_CHECKING:
    from jobmeter.session.container_attach import ContainerAttachment


def main(arguments: list[str]) -> int:
    parser = Parser("attach", "Measure a running process and its descendants, or a container, until it ends or Ctrl-C.")
    add_measure_options(parser)
    add = parser.add_argument
    add("pid", metavar="PID", nargs="?", type=option_type("PID", process_id), help="the process to measure")
    add("--container", metavar="NAME", help="measure a container that runs, named by its name or id, in place of PID")
    add("--engine", metavar="NAME", help="docker, podman or auto (default): the first that answers")
    options = parser.parse_args(arguments)
    check_report(options.report)
    attachment = attach(options)
    Forwarder(lambda number, from_terminal: attachment.stop(), ENDING)
    attachment.start()
    record = attachment.wait()
    write_report(options.report, record)
    if not options.quiet:
        tell_summary(record, attachment.journal_path)
    return 0


def attach(options: argparse.Namespace) -> Attachment | ContainerAttachment:
    """What the options name, ready to be measured."""
    if (options.pid is None) == (options.container is None):
        raise UsageError("attach: name either a process or a container: jobmeter attach PID, or --container NAME")
    if options.container is None:
        return Attachment(options.pid, measure_options(options), warn=warn)
    from jobmeter.launch.container.client import engine_name
    from jobmeter.session.container_attach import ContainerAttachment

    return ContainerAttachment(
        options.container, measure_options(options), engine=engine_name(options.engine), warn=warn
    )


def process_id(text: str) -> int:
    return positive_whole_number(text, "a process id")
