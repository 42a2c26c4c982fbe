"""The options of every command that measures: `run`, `attach` and those of containers."""

from __future__ import annotations

import argparse

from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.session.measuring import MeasureOptions
from jobmeter.settings import label, resolve


def add_measure_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--name", metavar="NAME", help="what to call the job (default: the command's name)")
    labels = option_type("--label", label)
    add("--label", metavar="KEY=VALUE", action="append", default=[], type=labels, help="a label; may be given again")
    add("--interval", metavar="TIME", help="time between samples (default 1s; the first ones come faster)")
    add("--window", metavar="TIME", help="time between lines of the journal (default 10s)")
    add("--measurements", metavar="KEYS", help="keys, globs, `default`, `all` or `none`, with commas; -KEY excludes")
    add("--per-process", action="store_true", help="store the figures of every process in the journal")
    add("--report", metavar="FILE", help="write the run record, as JSON, to FILE")
    add("--store", metavar="DIR", help="where runs are stored (default: the XDG data directory)")
    add("--quiet", action="store_true", help="print no summary")


def measure_options(options: argparse.Namespace) -> MeasureOptions:
    """What `add_measure_options` added, with the environment and configuration files as defaults."""
    return MeasureOptions(
        name=options.name,
        labels=dict(options.label),
        interval=resolve("interval", options.interval),
        window=resolve("window", options.window),
        measurements=resolve("measurements", options.measurements),
        store=resolve("store", options.store),
        per_process=options.per_process,
        whole_process=True,
    )
