"""Text for a terminal: nothing in it moves the cursor, changes colours or hides other text."""

from __future__ import annotations

import sys

from jobmeter.byte_text import as_represented
from jobmeter.light_typing import IO, cast


def printable(words: str) -> str:
    r"""The text on one line: control characters, line ends and invisible characters are escaped, as in `\x1b`."""
    if words.isprintable():
        return words
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in as_represented(words)
    )


def printable_lines(words: str) -> str:
    """As `printable`, for text of several lines: newlines stay."""
    return "\n".join(map(printable, words.split("\n")))


def data_output() -> IO[str]:
    """Stdout for data such as CSV: in UTF-8 whatever the locale is, and made `printable` only for a terminal."""
    if sys.stdout.isatty():
        return cast("IO[str]", _PrintableOutput())
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


class _PrintableOutput:
    def write(self, words: str) -> int:
        return sys.stdout.write(printable_lines(words))
