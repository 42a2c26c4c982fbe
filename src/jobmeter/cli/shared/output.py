"""The output of commands: data to stdout or a file, messages to stderr.

All output goes through this module or `console`, which escape control characters: the name of a job, a file or a record
cannot control the terminal. Each line stays one line; line ends inside it are escaped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from jobmeter.byte_text import json_text
from jobmeter.errors import UsageError
from jobmeter.light_typing import TYPE_CHECKING, Any
from jobmeter.links import Refused, open_output, output_path
from jobmeter.record.build import as_json
from jobmeter.terminal import printable
from jobmeter.working_directory import absolute_path

if TYPE_CHECKING:
    from jobmeter.record.types import Record


def check_report(path: str | None) -> None:
    """Raise UsageError if the report of a job cannot be written. To be called before the job starts."""
    if path is not None:
        check_output("--report", path)


def check_output(option: str, path: str) -> None:
    """Raise UsageError if the file that an option names cannot be written. To be called before any work."""
    try:
        output_path(path)
    except Refused as error:
        raise UsageError(f"{option}: {error.filename}: {error.strerror}. Name another file.") from None
    directory = os.path.dirname(absolute_path(path))
    place = path if os.path.exists(path) else directory
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(place, os.W_OK):
        raise UsageError(
            f"{option}: {path}: cannot be written there. Name a file in a directory that you may write to."
        )


def write_report(path: str | None, record: Record, journal: str | None) -> None:
    """Write the record with its findings; `journal` is the path of the file with its windows."""
    if path is None:
        return
    from jobmeter.report.record import windows_for_findings, with_findings  # late: few runs write a report

    write_text(path, as_json(with_findings(record, windows_for_findings(journal, record))) + "\n")


def write_text(path: str, report: str) -> None:
    """Write the text of a report. Warns if that fails: the job has run."""
    try:
        with open(open_output(path), "w", encoding="utf-8") as file:
            file.write(report)
    except OSError as error:
        warn(f"no report: {path}: {error.strerror}")


def print_summary(record: Record, journal: str | None) -> None:
    from jobmeter.report.run import HANGING, summary_lines  # late: not with --quiet

    print_to_stderr(summary_lines(record, journal), HANGING)


def warn(message: str) -> None:
    print_to_stderr([f"jobmeter: {message}"])


def print_line(line: str = "") -> None:
    """Print a line for people, on stdout."""
    print_lines([line])


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for people, on stdout."""
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON, on stdout."""
    sys.stdout.write(json_text(value, indent=indent) + "\n")


def print_to_stderr(lines: Iterable[str], indent: int = 2) -> None:
    """Print lines for people, on stderr. A terminal wraps long lines, with `indent` more columns from the second on."""
    before = _CLEAR_LINE if _passing_line.text else ""
    _passing_line.text = ""
    pieces: Iterable[str] = map(printable, lines)
    width = stderr_width()
    if width is not None:
        from jobmeter.report.wrapping import wrap  # late: lines in a pipe are not wrapped

        pieces = (piece for line in pieces for piece in wrap(line, width, indent))
    _write_to_stderr(before + "".join(f"{piece}\n" for piece in pieces))


def stderr_width() -> int | None:
    """The width of the terminal on stderr; None if stderr is not a terminal, or its width is unknown."""
    try:
        return os.get_terminal_size(2).columns or None
    except OSError:
        return None


class _PassingLine:
    """The text that `show_passing_line` shows at present; empty if none."""

    text = ""


_passing_line = _PassingLine()
_CLEAR_LINE = "\r\x1b[K"


def show_passing_line(line: str) -> None:
    """Show a line on a terminal until other output on stderr replaces it; an empty line clears it.

    If stderr is not a terminal, nothing is printed.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        return
    width = stderr_width() or 80
    text = printable(line)
    text = text if len(text) < width else f"{text[: max(width - 2, 0)]}…"
    if text != _passing_line.text:
        _passing_line.text = text
        _write_to_stderr(_CLEAR_LINE + text)


def _write_to_stderr(text: str) -> None:
    if sys.stderr is None:
        return  # it was closed at our start: file descriptor 2 may be another file of ours
    try:
        # In one write, so that it is not mixed with the output of other processes.
        os.write(2, text.encode(getattr(sys.stderr, "encoding", None) or "utf-8", "backslashreplace"))
    except OSError:
        pass  # stderr is closed or full: there is nowhere to print
