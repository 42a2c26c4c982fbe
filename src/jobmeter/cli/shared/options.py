"""Options on the command line: parsing them, and errors that say what to do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

from jobmeter.errors import OptionRefused, UsageError
from jobmeter.light_typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """argparse, with errors as one line that says what to do."""

    def __init__(self, command: str, description: str, usage: str | None = None) -> None:
        super().__init__(
            prog=f"jobmeter {command}",
            description=description,
            usage=usage,
            allow_abbrev=False,
            # With a fixed width, argparse imports no module to find out the terminal's: few runs print help.
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100, max_help_position=26),
        )

    described: list[Parser] | None = None
    """If not None, `print_help` appends the parser here instead of printing: for code that needs the options."""

    def print_help(self, file: Any = None) -> None:
        if Parser.described is not None:
            Parser.described.append(self)
            return
        sys.stdout.write(self.format_help())  # argparse would ignore write errors

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments:"):
            from jobmeter.suggestion import suggest  # late: few runs need it

            option = message.removeprefix("unrecognized arguments: ").partition(" ")[0]
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


def percentage(words: str) -> float:
    """Parse a percentage: 5.0 for `5` and `5%`. Raises UsageError if it is not a number of 0 or more."""
    try:
        percent = float(words.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent < float("inf"):
        raise UsageError(f"{words!r} is not a percentage")
    return percent


def fraction(words: str) -> float:
    """Parse a percentage as a fraction: 0.05 for `5` and `5%`."""
    return percentage(words) / 100


def refuse_words(arguments: Iterable[str], names: Iterable[str], why: str) -> None:
    """Raise OptionRefused for the first argument that is one of these options, which belong to another command."""
    for word in arguments:
        option = word.partition("=")[0]
        if option in names:
            raise OptionRefused(f"{option}: {why}")


def refuse_given(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise OptionRefused for the first of these options, `--NAME`, that was given."""
    for name in names:
        if getattr(options, name.replace("-", "_")) not in (None, False, []):
            raise OptionRefused(f"--{name}: {why}")


def add_store_option(parser: Parser | argparse._ArgumentGroup) -> None:
    parser.add_argument("--store", metavar="DIR", help="where runs are stored (default: the XDG data directory)")


def add_share_option(parser: Parser) -> None:
    parser.add_argument(
        "--share-group",
        metavar="GROUP",
        help="give the members of the Unix group GROUP access to the store and all its runs",
    )
