"""`jobmeter run`: run a command and measure it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time

from jobmeter.cli.options import (
    Parser,
    label,
    one_of,
    option_type,
    positive_bytes,
    positive_number,
    positive_seconds,
    resolve,
)  # fmt: skip
from jobmeter.errors import UsageError
from jobmeter.launch.capture import Capture
from jobmeter.launch.signals import FORWARDED, Forwarder
from jobmeter.model import Record, Requirement
from jobmeter.report.summary import summary_lines
from jobmeter.session import RunOptions, Session


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    settings = {
        name: resolve(name, getattr(options, name))
        for name in ("interval", "window", "measurements", "orphans", "store")
    }
    if options.report is not None:
        _check_report(options.report)
    capture = Capture(options.capture) if options.capture is not None else None
    session = Session(
        RunOptions(
            command=options.command,
            name=options.name,
            labels=dict(options.label),
            streams=capture.streams if capture else None,
            requirement=Requirement(options.cpus, options.memory, options.runtime),
            enforce=options.enforce,
            per_process=options.per_process,
            **settings,
        ),
        warn=_warn,
    )
    # Held back until there is a job to hand them to.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    session.start()
    if capture:
        capture.start()
    Forwarder(session.receive)
    record = session.wait()
    if capture:
        capture.finish(wait=not record["provenance"].get("left_running"))
    record["provenance"]["meter_cpu_seconds"] = round(time.process_time(), 4)
    if options.report is not None:
        _write_report(options.report, record)
    if not options.quiet:
        print("\n".join(summary_lines(record, session.journal_path)), file=sys.stderr)
    return session.outcome.shell_code


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "run",
        "Run a command and measure what it and everything it starts use. The exit code is the command's.",
        usage="jobmeter run [options] [--] COMMAND [ARGUMENT...]",
    )
    add = parser.add_argument
    add("--name", metavar="NAME", help="what to call the job (default: the command's name)")
    add(
        "--label",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=option_type("--label", label),
        help="a label of the run; may be given again",
    )
    add("--interval", metavar="TIME", help="time between samples (default 1s; the first ones come faster)")
    add("--window", metavar="TIME", help="time between lines of the journal (default 10s)")
    add(
        "--measurements",
        metavar="KEYS",
        help="what to measure: keys, globs (cgroup_*), `default`, `all`, with commas between",
    )
    add("--cpus", metavar="N", type=option_type("--cpus", positive_number), help="CPUs the job asks for")
    add(
        "--memory",
        metavar="SIZE",
        type=option_type("--memory", positive_bytes),
        help="memory the job asks for, for example 4g",
    )
    add(
        "--runtime",
        metavar="TIME",
        type=option_type("--runtime", positive_seconds),
        help="time the job asks for, for example 2h",
    )
    add("--enforce", action="store_true", help="make what is asked for a limit, and end the job that exceeds it")
    add(
        "--orphans",
        metavar="HOW",
        type=option_type("--orphans", one_of("leave", "wait", "end")),
        help="processes left when the command ends: leave (default), wait or end",
    )
    add("--capture", metavar="DIR", help="also write stdout and stderr to files in DIR")
    add("--report", metavar="FILE", help="write the run record, as JSON, to FILE")
    add("--store", metavar="DIR", help="where runs are kept (default: the XDG data directory)")
    add("--quiet", action="store_true", help="print no summary")
    add("--per-process", action="store_true", help="keep the figures of every process in the journal")
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        raise UsageError("run: no command given. Write: jobmeter run [options] -- COMMAND [ARGUMENT...]")
    return options


def _check_report(path: str) -> None:
    directory = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(directory, os.W_OK):
        raise UsageError(f"--report: {path}: cannot be written there")


def _write_report(path: str, record: Record) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=2)
            file.write("\n")
    except OSError as error:
        _warn(f"no report: {path}: {error.strerror}")


def _warn(message: str) -> None:
    print(f"jobmeter: {message}", file=sys.stderr)
