"""Options on the command line: parsing them, and errors that say what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from jobmeter.errors import UsageError
from jobmeter.session.measuring import MeasureOptions
from jobmeter.settings import label, resolve


class Parser(argparse.ArgumentParser):
    """argparse, with errors as one line that says what to do."""

    def __init__(self, command: str, description: str, usage: str | None = None) -> None:
        super().__init__(
            prog=f"jobmeter {command}",
            description=description,
            usage=usage,
            allow_abbrev=False,
            # A width of its own saves importing what would find out the terminal's, for help that few runs print.
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100, max_help_position=26),
        )

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments:"):
            option = message.split()[2]
            message = f"{option}: unknown option{self._nearest(option)}"
        elif message == "argument --measurements: expected one argument":
            message = "--measurements: what to measure is missing. Exclusions alone are written --measurements=-KEY"
        raise UsageError(f"{message.rstrip('.')}. See `{self.prog} --help`.")

    def _nearest(self, option: str) -> str:
        import difflib

        near = difflib.get_close_matches(option.partition("=")[0], self._option_string_actions, n=1)
        return f" (the nearest is {near[0]})" if near else ""


def option_type(option: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type for argparse that names the option in its error."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None

    return convert


def add_measure_options(parser: Parser) -> None:
    """The options of every command that measures."""
    add = parser.add_argument
    add("--name", metavar="NAME", help="what to call the job (default: the command's name)")
    labels = option_type("--label", label)
    add("--label", metavar="KEY=VALUE", action="append", default=[], type=labels, help="a label; may be given again")
    add("--interval", metavar="TIME", help="time between samples (default 1s; the first ones come faster)")
    add("--window", metavar="TIME", help="time between lines of the journal (default 10s)")
    add("--measurements", metavar="KEYS", help="keys, globs, `default`, `all` or `none`, with commas; -KEY excludes")
    add("--per-process", action="store_true", help="keep the figures of every process in the journal")
    add("--report", metavar="FILE", help="write the run record, as JSON, to FILE")
    add("--store", metavar="DIR", help="where runs are kept (default: the XDG data directory)")
    add("--quiet", action="store_true", help="print no summary")


def measure_options(options: argparse.Namespace) -> MeasureOptions:
    """What `add_measure_options` added, with the environment and configuration files behind it."""
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
