"""Sentences on stdout: wrapped between words on a terminal, one line each in a pipe."""

from __future__ import annotations

from collections.abc import Iterable

from jobmeter.cli.shared.output import print_line
from jobmeter.cli.shared.tables import terminal
from jobmeter.report.wrapping import wrap
from jobmeter.terminal import printable


def print_sentences(sentences: Iterable[str], *, style: str = "", indent: int = 2) -> None:
    """Print each sentence on its own line. A terminal wraps it, with `indent` more columns from the second line on."""
    console = terminal()
    for sentence in sentences:
        if console is None:
            print_line(sentence)
            continue
        from rich.text import Text

        for line in wrap(printable(sentence), console.width, indent):
            console.print(Text(line, style), soft_wrap=True)
