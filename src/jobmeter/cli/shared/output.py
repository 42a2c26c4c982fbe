"""What commands print and write: data to stdout or a file, messages to stderr."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jobmeter.errors import UsageError
from jobmeter.record.build import as_json
from jobmeter.report.run import summary_lines

if TYPE_CHECKING:
    from jobmeter.record.types import Record


def check_report(path: str | None) -> None:
    """UsageError, before the job starts, when its report could not be written."""
    if path is None:
        return
    directory = os.path.dirname(os.path.abspath(path))
    place = path if os.path.exists(path) else directory
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(place, os.W_OK):
        raise UsageError(
            f"--report: {path}: cannot be written there. Name a file in a directory that you may write to."
        )


def write_report(path: str | None, record: Record) -> None:
    if path is None:
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(as_json(record) + "\n")
    except OSError as error:
        warn(f"no report: {path}: {error.strerror}")


def print_summary(record: Record, journal: str | None) -> None:
    print_to_stderr("\n".join(summary_lines(record, journal)))


def warn(message: str) -> None:
    print_to_stderr(f"jobmeter: {message}")


def print_to_stderr(text: str) -> None:
    """Print lines for people, on stderr."""
    if sys.stderr is None:
        return  # closed when we started; descriptor 2 may be a file of ours by now
    try:
        # In one piece, so that it is not mixed with what others write there.
        os.write(2, f"{text}\n".encode(errors="backslashreplace"))
    except OSError:
        pass  # stderr is closed or full: there is nowhere to print
