"""`jobmeter attach`: measure a process that already runs, with its descendants."""

from __future__ import annotations

from jobmeter.cli.options import Parser, add_measure_options, measure_options, option_type
from jobmeter.cli.output import check_report, tell_summary, warn, write_report
from jobmeter.errors import UsageError
from jobmeter.launch.signals import ENDING, Forwarder
from jobmeter.session.attach import Attachment


def main(arguments: list[str]) -> int:
    parser = Parser("attach", "Measure a running process and its descendants from now on, until all end or Ctrl-C.")
    add_measure_options(parser)
    parser.add_argument("pid", metavar="PID", type=option_type("PID", process_id), help="the process to measure")
    options = parser.parse_args(arguments)
    check_report(options.report)
    attachment = Attachment(options.pid, measure_options(options), warn=warn)
    Forwarder(lambda number, from_terminal: attachment.stop(), ENDING)
    attachment.start()
    record = attachment.wait()
    write_report(options.report, record)
    if not options.quiet:
        tell_summary(record, attachment.journal_path)
    return 0


def process_id(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise UsageError(f"{text!r} is not a process id")
    return int(text)
