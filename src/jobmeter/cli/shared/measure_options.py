"""The options of the commands that measure: `run` and `attach`, of processes and of containers."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser, add_share_option, add_store_option, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.session.enclosing_run import enclosing_label
from jobmeter.session.measuring import USUAL, MeasureOptions
from jobmeter.settings import Configuration, label

if TYPE_CHECKING:
    from jobmeter.session.metrics import MetricFiles


def add_measure_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--name", metavar="NAME", help="what to call the job (default: the command's name)")
    labels = option_type("--label", label)
    add("--label", metavar="KEY=VALUE", action="append", default=[], type=labels, help="a label; may be given again")
    add("--interval", metavar="TIME", help="time between samples (default 1s; the first ones come faster)")
    windows = "time between lines of the journal (default: 15 ms at first, growing with the run up to 10s)"
    add("--window", metavar="TIME", help=windows)
    add("--measurements", metavar="KEYS", help="keys, globs, `default`, `all` or `none`, with commas; -KEY excludes")
    add("--threads", action="store_true", help="measure each thread too, and count instructions where the machine can")
    add("--per-process", action="store_true", help="store the figures of every process in the journal")
    add("--report", metavar="FILE", help="write the run record, as JSON, to FILE")
    add_store_option(parser)
    add_share_option(parser)
    add("--quiet", action="store_true", help="print no summary")


def measure_options(options: argparse.Namespace) -> MeasureOptions:
    """The options of `add_measure_options`, with defaults from the environment and configuration files."""
    settings = Configuration(warn)
    store = settings.resolve("store", options.store)
    if (options.share_group or settings.resolve("share_group")) is not None:
        from jobmeter.cli.shared.sharing import share  # late: few runs share their store

        share(store, options.share_group)
    window = settings.resolve("window", options.window)
    return MeasureOptions(
        name=options.name,
        labels={**enclosing_label(), **dict(options.label)},
        interval=settings.resolve("interval", options.interval),
        window=USUAL.window if window is None else window,
        fine_windows=window is None,
        measurements=_with_threads(settings.resolve("measurements", options.measurements), options.threads),
        from_file=settings.is_from_file("measurements", options.measurements),
        store=store,
        per_process=options.per_process,
        whole_process=True,
        redact=settings.resolve("redact"),
        metric_files=_metric_files(vars(options).get("metrics")),
    )


def _with_threads(patterns: list[str] | None, threads: bool) -> list[str] | None:
    """The patterns of what to measure, with those of threads and of counters of instructions.

    The counters are globs, not keys: the job also runs where the machine has no such counters.
    """
    return with_patterns(patterns, "thread_*", "perf_instruction*", "perf_cycle*") if threads else patterns


def with_patterns(patterns: list[str] | None, *added: str) -> list[str]:
    """The patterns of what to measure, with others added. Exclusions alone are of the default."""
    chosen = patterns or ["default"]
    first = [] if any(not pattern.startswith("-") for pattern in chosen) else ["default"]
    return [*first, *chosen, *added]


def _metric_files(path: str | None) -> MetricFiles | None:
    if path is None:
        return None
    from jobmeter.session.metrics import MetricFiles  # late: few runs have metrics

    return MetricFiles(file=path)
