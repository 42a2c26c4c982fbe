"""Reads the `.command.trace` that Nextflow writes for each task, in the task's own directory below `work`.

Other files of that directory have the rest: `.exitcode` the exit code, `.command.run` the name of the task; the times
of `.command.begin` and `.exitcode` are its start and end. In `.command.trace`, percentages are in tenths and memory is
in KiB. The same task in a `trace.txt` is the same run.
"""

from __future__ import annotations

import os
import re
from typing import BinaryIO

from jobmeter.exchange import nextflow
from jobmeter.exchange.cells import BadCell, count, number
from jobmeter.exchange.foreign import Items, Unfinished, UnusableRow, decoded
from jobmeter.working_directory import absolute_path

KIND = "nextflow-task"
WORDS = "task directories of Nextflow"
TRACE = ".command.trace"
_BESIDE = re.compile(r"\.command\.(run|sh|log|out|err|begin|env|stub|yml)|\.exitcode")
_FIRST = "nextflow.trace/"
_TENTHS = ("%cpu", "%mem")
_KIB = ("rss", "vmem", "peak_rss", "peak_vmem")
_NAME = re.compile(r"^(?:### name: '(.*)'|# NEXTFLOW TASK: (.*))$", re.MULTILINE)
_MOST_NAME = 64 << 10
"""Bytes of `.command.run` that are searched for the name; it is in the first lines."""


def trace_path(path: str) -> str:
    """The trace of the task if `path` is another file of its directory; otherwise `path` itself."""
    folder, name = os.path.split(path)
    return os.path.join(folder, TRACE) if _BESIDE.fullmatch(name) else path


def fits(first_line: str, beginning: str) -> bool:
    return first_line.startswith(_FIRST)


def read(path: str, file: BinaryIO) -> Items:
    """The one run of a task. A task without `.exitcode` has not ended."""
    folder = os.path.dirname(absolute_path(path))
    try:
        code = _text(f"{folder}/.exitcode")
        if code is None:
            yield Unfinished(path)
            return
        row = {**_figures(file), **_about(folder), "exit": code.strip()}
        row["status"] = "COMPLETED" if count(row["exit"], "exit") == 0 else "FAILED"
        yield nextflow.run_of_row(path, row, 1, os.fstat(file.fileno()).st_mtime)
    except BadCell as bad:
        yield UnusableRow(path, str(bad))


def _figures(file: BinaryIO) -> dict[str, str]:
    """The lines `key=value`, with values converted to the units of a raw trace."""
    cells: dict[str, str] = {}
    for line, text, problem in decoded(file):
        if text is None:
            raise BadCell(f"line {line} {problem}")
        key, separator, value = text.partition("=")
        if not separator or not value.strip():
            continue
        if key in _TENTHS:
            cells[key] = f"{number(value, key) / 10:.1f}"
        elif key in _KIB:
            cells[key] = str(count(value, key) << 10)
        elif key != "cpu_model":
            cells[key] = value.strip()
    return cells


def _about(folder: str) -> dict[str, str]:
    """What the directory shows of its task: hash, name, start and end (in milliseconds since 1970)."""
    above, rest = os.path.split(folder)
    match = _NAME.search(_text(f"{folder}/.command.run") or "")
    about = {
        "hash": f"{os.path.basename(above)}/{rest[:6]}",
        "name": (match[1] or match[2]).strip() if match else "task",
        "workdir": folder,
    }
    for column, name in (("start", ".command.begin"), ("complete", ".exitcode")):
        try:
            about[column] = str(round(os.stat(f"{folder}/{name}").st_mtime * 1000))
        except OSError:
            continue
    return about


def _text(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_NAME).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadCell(f"{path}: {error.strerror}") from None
