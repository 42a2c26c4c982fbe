"""Writes the man page, man/jobmeter.1, from the help of the commands."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from jobmeter.cli.complete import parser_of
from jobmeter.cli.main import COMMANDS
from jobmeter.cli.shared.options import Parser
from jobmeter.settings import SETTINGS

PAGE = Path(__file__).resolve().parent.parent / "man" / "jobmeter.1"

_ABOUT = """jobmeter runs a command and measures it with everything it starts: CPU, memory, disk and processes. It
stores every run, and compares what a job used with what it requested. Its figures are right, or say "at least"."""
_EXIT = (
    ("0", "Success. Of `run`, and of jobs in general, the exit code is that of the job; 128+N if signal N ended it."),
    (
        "1",
        "`check`: something used more than it requested. `workflow run`: a job failed. `import`: a row was unusable.",
    ),
    ("2", "The command line is not valid; nothing was done."),
    ("125", "jobmeter failed before the job started."),
    ("126, 127", "The program of the job is not executable, or was not found."),
)


def page() -> str:
    """The man page as groff source."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '.\\" Made by scripts/make_man.py from the help of the commands.'
    yield '.TH JOBMETER 1 "" "jobmeter" "User Commands"'
    yield from _section("NAME", "jobmeter \\- measure what a job really used, and recommend what to request next time")
    yield ".SH SYNOPSIS"
    yield from (".B jobmeter run", "[\\fIoption\\fR ...] \\-\\- \\fIcommand\\fR [\\fIargument\\fR ...]", ".br")
    yield from (".B jobmeter", "\\fIcommand\\fR [\\fIoption\\fR ...]")
    yield from _section("DESCRIPTION", _text(_ABOUT))
    yield ".SH COMMANDS"
    for path, parser in _parsers():
        yield from _command(" ".join(path), parser)
    yield from _section("EXIT STATUS")
    for code, meaning in _EXIT:
        yield from (".TP", f".B {code}", _text(meaning))
    yield from _section("ENVIRONMENT")
    for setting in SETTINGS.values():
        if setting.environment is not None:
            option = f"--{setting.name.replace('_', '-')}"
            yield from (".TP", f".B {setting.environment}", _text(f"The default of `{option}`."))
    yield from _section("FILES")
    yield from (
        ".TP",
        ".I ~/.local/share/jobmeter",
        _text("Where runs are stored, unless JOBMETER_STORE names a directory."),
    )
    yield from (".TP", ".I jobmeter.toml", _text("Settings of a project, here or in a directory above."))
    yield from (".TP", ".I ~/.config/jobmeter/config.toml", _text("Settings of the user."))


def _parsers() -> Iterator[tuple[list[str], Parser]]:
    for name, command in COMMANDS.items():
        module = importlib.import_module(command.module)
        below = getattr(module, "COMMANDS", {}) if name == "workflow" else {}
        for path, each in [([name], command)] if not below else [([name, sub], below[sub]) for sub in below]:
            parser = parser_of(importlib.import_module(each.module))
            if parser is not None:
                yield path, parser


def _command(name: str, parser: Parser) -> Iterator[str]:
    yield f'.SS "jobmeter {name}"'
    yield _text(parser.description or "")
    synopsis = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ")).strip()
    yield from (".PP", ".nh", f"\\fB{_escape(synopsis)}\\fR", ".hy")
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or "--help" in action.option_strings:
            continue
        yield from (".TP", _names(action), _text(_expanded(action)))
    if parser.epilog:
        yield from (".PP", _text(parser.epilog))


def _names(action: argparse.Action) -> str:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest)
    shown = "" if action.nargs == 0 else f" \\fI{_escape(str(value))}\\fR"
    if not action.option_strings:
        return shown.strip()
    return ", ".join(f"\\fB{_escape(option)}\\fR{shown}" for option in action.option_strings)


def _expanded(action: argparse.Action) -> str:
    values = {"default": action.default, "prog": "jobmeter"}
    return (action.help or "") % values if "%(" in (action.help or "") else (action.help or "").replace("%%", "%")


def _section(title: str, *lines: str) -> Iterator[str]:
    yield f'.SH "{title}"'
    yield from lines


def _text(words: str) -> str:
    """A paragraph with the text in backquotes in bold, escaped so that groff takes no line for a request."""
    parts = _escape(" ".join(words.split())).split("`")
    bold = "".join(f"\\fB{part}\\fR" if number % 2 else part for number, part in enumerate(parts))
    return f"\\&{bold}" if bold.startswith((".", "'")) else bold


def _escape(words: str) -> str:
    return words.replace("\\", "\\e").replace("-", "\\-").replace("\u2026", "...")


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
