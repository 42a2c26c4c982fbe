"""Writes each command's `--help` into its page of docs/, after its `<!-- help: NAME -->` mark, and the man page."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from jobmeter.cli.main import COMMANDS, main

DOCS = Path(__file__).resolve().parent.parent / "docs"
_MARKED = re.compile(r"(<!-- help: ([a-z ]+) -->\n```\n)(.*?)(```)", re.DOTALL)


def help_of(command: str) -> str:
    """What `jobmeter COMMAND --help` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    return printed.getvalue()


def embedded(text: str) -> str:
    """The page with its help brought up to date."""
    return _MARKED.sub(lambda match: match[1] + help_of(match[2]) + match[4], text)


def pages() -> list[Path]:
    return sorted(DOCS.glob("*.md"))


def undocumented() -> list[str]:
    """Commands whose help stands on no page."""
    marks = {match[2] for page in pages() for match in _MARKED.finditer(page.read_text())}
    return [name for name in COMMANDS if name not in marks and not any(mark.startswith(f"{name} ") for mark in marks)]


if __name__ == "__main__":
    import make_man  # type: ignore[import-not-found,unused-ignore]  # beside this file

    for page in pages():
        page.write_text(embedded(page.read_text()))
    make_man.PAGE.write_text(make_man.page(), encoding="utf-8")
