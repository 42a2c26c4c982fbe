"""`jobmeter cluster`: what a cluster reserves and what it uses, and what to change."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from jobmeter.cli.shared.options import Parser, add_store_option, option_type
from jobmeter.cli.shared.output import check_output, print_json, print_to_stderr, stderr_width, warn
from jobmeter.errors import CommandNotExecutable, CommandNotFound, LaunchError, UsageError
from jobmeter.settings import Configuration, line_percent, positive_seconds, sampling_interval

if TYPE_CHECKING:
    from types import FrameType

    from jobmeter.analyse.cluster.thresholds import Thresholds
    from jobmeter.cluster.monitor import ClusterMonitor
    from jobmeter.record.cluster_types import ClusterReport

_IDLE_SAMPLES = 2
"""The cluster is idle after this many samples in a row in which nothing runs."""


_FIRST_GAP = 0.5
"""Seconds between the first samples while a command runs."""


class _Stopping:
    """Ends the watching on a signal, between two samples. A command gets the signal, and is watched until it ends."""

    def __init__(self) -> None:
        self.signalled = threading.Event()
        self.job: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []  # signals that came before the command had started

    def receive(self, number: int, frame: FrameType | None) -> None:
        self.signalled.set()
        # Ctrl-C reaches the command by itself: the terminal sends it to both.
        if number == signal.SIGINT and os.isatty(0):
            return
        if self.job is None:
            self._early.append(number)
        else:
            self.job.send_signal(number)

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start the command, and send it the signals that came during its start."""
        self.job = job = _start(command)
        for number in self._early:
            job.send_signal(number)
        return job


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    for option, path in (("--html", options.html), ("--report", options.report)):
        if path is not None:
            check_output(option, path)
    settings = Configuration(warn)
    store = settings.resolve("store", options.store)
    limits = _thresholds(options, settings)
    if options.show is not None:
        return _show_stored(options, store, limits)
    from jobmeter.cluster.monitor import ClusterMonitor

    monitor = ClusterMonitor(
        options.engine or _likely_engine(options),
        options.address,
        interval=options.interval,
        thresholds=limits,
        store=store,
        warn=warn,
    )
    monitor.start()
    try:
        code = _watch(monitor, options)
    finally:
        monitor.stop()
    _write_files(monitor, options)
    _print(monitor.report(), options)
    return code


def _likely_engine(options: argparse.Namespace) -> str:
    return "ray" if options.address is not None or os.environ.get("RAY_ADDRESS") else "local"


def _thresholds(options: argparse.Namespace, settings: Configuration) -> Thresholds:
    from jobmeter.analyse.cluster.thresholds import Thresholds

    high = options.high or settings.resolve("cluster_high")
    low = options.low or settings.resolve("cluster_low")
    if low >= high:
        raise UsageError(f"--low: {low:g} % is not below --high, {high:g} %")
    return Thresholds(high / 100, low / 100, options.after or settings.resolve("cluster_after"))


def _watch(monitor: ClusterMonitor, options: argparse.Namespace) -> int:
    """Poll until the time is over, the cluster is idle, the command ends or a signal comes. Returns the exit code."""
    stopping = _Stopping()
    before = {number: signal.signal(number, stopping.receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if options.command:
            return _poll_while(monitor, stopping.start(options.command))
        with _display(monitor, options):
            _poll_until(monitor, options, stopping.signalled)
    except LaunchError as error:
        # The samples until then are still reported.
        warn(str(error))
        return error.exit_code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _poll_until(monitor: ClusterMonitor, options: argparse.Namespace, stopped: threading.Event) -> None:
    began, idle = time.monotonic(), 0
    end = float("inf") if options.duration is None else began + options.duration
    due = began + monitor.interval
    while (now := time.monotonic()) < end and not stopped.wait(max(min(due, end) - now, 0.0)):
        due = max(due + monitor.interval, time.monotonic())
        monitor.poll()
        idle = idle + 1 if monitor.is_idle else 0
        if options.until_idle and idle >= _IDLE_SAMPLES:
            return


def _poll_while(monitor: ClusterMonitor, job: subprocess.Popen[bytes]) -> int:
    """Poll until the command ends, and return its exit code. Polls often at first: the command may be short."""
    while True:
        try:
            code = job.wait(min(monitor.interval, max(_FIRST_GAP, monitor.history.seconds / 10)))
        except subprocess.TimeoutExpired:
            _poll_beside(monitor)
            continue
        return code if code >= 0 else 128 - code


def _poll_beside(monitor: ClusterMonitor) -> None:
    """Poll. A cluster that is gone is reported once, and does not end the command."""
    try:
        monitor.poll()
    except LaunchError as error:
        if str(error) not in monitor.notes:
            monitor.notes.append(str(error))
            warn(str(error))


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command)
    except FileNotFoundError:
        raise CommandNotFound(f"{command[0]}: there is no such command") from None
    except OSError as error:
        raise CommandNotExecutable(f"{command[0]}: {error.strerror}") from None


def _display(monitor: ClusterMonitor, options: argparse.Namespace) -> contextlib.AbstractContextManager[object]:
    if options.quiet or sys.stderr is None or not sys.stderr.isatty():
        return contextlib.nullcontext()
    from jobmeter.cli.cluster_display import ClusterDisplay  # late: rich is slow to load

    return ClusterDisplay(monitor)


def _show_stored(options: argparse.Namespace, store: str, limits: Thresholds) -> int:
    from jobmeter.analyse.cluster.report import cluster_report
    from jobmeter.cluster.storage import path_of, read_samples, resolve_id

    about, history = read_samples(path_of(store, resolve_id(store, options.show)))
    report = cluster_report(history, about, limits)
    if options.html is not None:
        from jobmeter.atomic_file import replacing
        from jobmeter.report.cluster.page import cluster_page

        with replacing(options.html) as file:
            file.write(cluster_page(report, history))
        warn(f"written: {options.html}")
    if options.report is not None:
        _write_json(options.report, report)
    _print(report, options)
    return 0


def _write_files(monitor: ClusterMonitor, options: argparse.Namespace) -> None:
    for path in (options.html, options.report):
        if path is not None:
            monitor.save(path)
            warn(f"written: {path}")


def _write_json(path: str, report: ClusterReport) -> None:
    from jobmeter.atomic_file import replacing
    from jobmeter.byte_text import json_text

    with replacing(path) as file:
        file.write(json_text(report, indent=2) + "\n")
    warn(f"written: {path}")


def _print(report: ClusterReport, options: argparse.Namespace) -> None:
    if options.json:
        print_json(report)
    elif options.command:
        # stdout belongs to the command.
        if not options.quiet:
            from jobmeter.report.cluster.text import section_lines

            first, *others = section_lines(report, stderr_width())
            print_to_stderr([f"jobmeter: {first}", *(f"  {line}" for line in others)])
    else:
        _print_tables(report)


def _print_tables(report: ClusterReport) -> None:
    from jobmeter.cli.shared.sentences import print_sentences
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.cluster import text

    print_sentences([text.title(report), ""])
    columns, rows = text.shown_columns(text.NODE_COLUMNS, text.node_rows(report))
    print_table(columns, rows, has_total=len(rows) > 1)
    if tasks := text.task_rows(report):
        print_sentences([""])
        print_table(text.TASK_COLUMNS, tasks)
    if lines := text.summary_lines(report):
        print_sentences(["", *lines])
    print_sentences(
        ["", *(map(text.finding_text, report["findings"]) if report["findings"] else ["Nothing stands out."])]
    )
    print_sentences([f"Stored as {report['id']}: jobmeter cluster --show {report['id']} --html FILE.html"])


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "cluster",
        "Show what the nodes of a cluster reserve and what they really use, and what to change. On a terminal a table "
        "that changes in place; the report comes at the end, of the time given, of COMMAND, or with Ctrl-C.",
        usage="jobmeter cluster [options] [--for TIME | --until-idle | -- COMMAND [ARGUMENT...]]",
    )
    add = parser.add_argument
    add("--engine", metavar="NAME", help="ray, or local: this machine (default: ray with an address, else local)")
    add("--address", metavar="HOST:PORT", help="the head of the Ray cluster, or auto: the one that runs here")
    interval = option_type("--interval", sampling_interval)
    add("--interval", metavar="TIME", type=interval, default=5.0, help="time between two samples (default 5s)")
    duration = option_type("--for", positive_seconds)
    add("--for", dest="duration", metavar="TIME", type=duration, help="end after this time, for example 10m")
    add("--until-idle", action="store_true", help="end when nothing runs and nothing waits")
    high, low = option_type("--high", line_percent), option_type("--low", line_percent)
    add("--high", metavar="PERCENT", type=high, help="a share above this is reported as high (default 90)")
    add("--low", metavar="PERCENT", type=low, help="a share below this is reported as low (default 30)")
    after = option_type("--after", positive_seconds)
    add(
        "--after",
        metavar="TIME",
        type=after,
        help="report a condition only if it lasted at least this long (default 1m)",
    )
    add("--html", metavar="FILE.html", help="also write a page with reserved and used over time")
    add("--report", metavar="FILE.json", help="also write the report as JSON")
    add("--show", metavar="ID", help="watch nothing: report what was stored under this id, or `last`")
    add("--json", action="store_true", help="print the report as an object")
    add("--quiet", action="store_true", help="show no table while it runs")
    add_store_option(parser)
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    ways = [options.duration is not None, options.until_idle, bool(options.command)]
    if sum(ways) > 1:
        raise UsageError("--for, --until-idle and a command each say when to end: give one of them")
    if options.show is not None and (any(ways) or options.address or options.engine):
        raise UsageError("--show: reports what is stored, and watches nothing: leave out the other options")
    if options.html is not None and not options.html.endswith((".html", ".htm")):
        raise UsageError(f"--html: {options.html}: it is a page. Name a file that ends in .html")
    if options.report is not None and options.report.endswith((".html", ".htm")):
        raise UsageError(f"--report: {options.report}: it is JSON; --html writes a page")
    return options
