"""Options on the command line: parsing them, and errors that say what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from jobmeter.errors import OptionRefused, UsageError


class Parser(argparse.ArgumentParser):
    """argparse, with errors as one line that says what to do."""

    def __init__(self, command: str, description: str, usage: str | None = None) -> None:
        super().__init__(
            prog=f"jobmeter {command}",
            description=description,
            usage=usage,
            allow_abbrev=False,
            # A fixed width saves importing what would find out the terminal's, for help that few runs print.
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100, max_help_position=26),
        )

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments:"):
            from jobmeter.suggestion import suggest  # late: few runs need it

            option = message.split()[2]
            message = f"{option}: unknown option. {suggest(option.partition('=')[0], self._option_string_actions, '')}"
        elif message == "argument --measurements: expected one argument":
            message = "--measurements: what to measure is missing. Exclusions alone are written --measurements=-KEY"
        end = "" if message.endswith("?") else "."
        raise UsageError(f"{message.rstrip('. ')}{end} See `{self.prog} --help`.")


def option_type(option: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type for argparse that names the option in its error."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None

    return convert


def refuse_words(arguments: Iterable[str], names: Iterable[str], why: str) -> None:
    """OptionRefused for the first of these options, of another command, among the arguments."""
    for word in arguments:
        option = word.partition("=")[0]
        if option in names:
            raise OptionRefused(f"{option}: {why}")


def refuse_given(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """OptionRefused for the first of these options, `--NAME`, that was given."""
    for name in names:
        if getattr(options, name.replace("-", "_")) not in (None, False, []):
            raise OptionRefused(f"--{name}: {why}")
