"""Finds the files to import: those that are named, and those in directories that are named."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.exchange import duct, nextflow_task
from jobmeter.exchange.detect import FORMATS, kinds_in_words, recognise

_LOG_OF = {duct.KIND: duct.info_path, nextflow_task.KIND: nextflow_task.trace_path}
"""Kind → the file that stands for a whole log, given any file of the log. For other kinds, each file is a log."""


class InputFile(NamedTuple):
    """One file to read, of a kind that is known."""

    path: str  # as messages show it
    kind: str
    found_in: str | None  # the directory in which it was found; None: it was named
    file: BinaryIO | None = None  # open already; None: it is opened when it is read

    def open(self) -> BinaryIO:
        """The open file. Raises UsageError if it cannot be read."""
        return self.file if self.file is not None else _open(self.path)

    @property
    def subject(self) -> str:
        """The path under which its runs are counted: of the directory in which it was found, or its own."""
        return self.found_in or self.path


class Skipped(NamedTuple):
    """A file in a directory that is not imported."""

    path: str
    why: str


class Inputs(NamedTuple):
    files: list[InputFile]
    skipped: list[Skipped]


def find_inputs(paths: list[str], kind: str | None, progress: Callable[[str], None] = lambda _: None) -> Inputs:
    """Open and recognise every file, before anything is stored.

    Raises UsageError for the first named file that cannot be used, and for a directory without any usable file.
    """
    inputs = Inputs([], [])
    for path in dict.fromkeys(_log_of(path, kind) for path in paths):
        if path != "-" and os.path.isdir(path):
            _search(path, kind, inputs, progress)
        else:
            file = _spooled(sys.stdin.buffer) if path == "-" else _open(path)
            shown = "stdin" if path == "-" else path
            inputs.files.append(InputFile(shown, kind or recognise(shown, file), None, file))
    return inputs


def _log_of(path: str, kind: str | None) -> str:
    """The file that stands for the log that this file is a part of, else the file itself."""
    for name, log_of in _LOG_OF.items():
        log = log_of(path)
        if kind in (None, name) and log != path and os.path.isfile(log):
            return log
    return path


def _search(directory: str, kind: str | None, inputs: Inputs, progress: Callable[[str], None]) -> None:
    """Add the files in and below a directory: those of known kinds in the order of their kinds, others as skipped."""
    files: list[InputFile] = []
    count = 0
    for count, path in enumerate(_files_below(directory, inputs.skipped), start=1):
        progress(f"{directory}: {count:,} files, {len(files):,} to import")
        if _log_of(path, kind) != path:
            continue  # the file that stands for the log is found as well
        try:
            with _open(path) as file:
                files.append(InputFile(path, recognise(path, file, only=kind), directory))
        except (UsageError, OSError) as error:
            why = str(error).removeprefix(f"{path}: ")
            inputs.skipped.append(Skipped(path, why.partition(". Name it with")[0]))
    if not files:
        there_are = "it has no files" if not count else f"none of its {count:,} files is of a kind that is known"
        raise UsageError(f"{directory}: {there_are}. Kinds: {kinds_in_words()}")
    # Tables of many runs come first: a run that a table has is then not taken from the files of that run.
    order = list(FORMATS)
    inputs.files.extend(sorted(files, key=lambda each: order.index(each.kind)))


def _files_below(directory: str, skipped: list[Skipped]) -> Iterator[str]:
    def note(error: OSError) -> None:
        skipped.append(Skipped(str(error.filename), error.strerror or "cannot be read"))

    for place, folders, names in os.walk(directory, onerror=note):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            if os.path.islink(path):
                skipped.append(Skipped(path, "is a symbolic link"))
            elif not os.path.isfile(path):
                skipped.append(Skipped(path, "is not a regular file"))
            else:
                yield path


def skipped_lines(skipped: Iterable[Skipped], most: int) -> list[str]:
    """One line per skipped file, with the reason; after `most` files, one line for all others."""
    listed = list(skipped)
    lines = [f"{each.path}: skipped: {each.why}" for each in listed[:most]]
    if len(listed) > most:
        lines.append(f"{len(listed) - most:,} more files were skipped; --json lists all")
    return lines


def _open(path: str) -> BinaryIO:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and path != os.devnull and not _is_terminal(path)):
            raise UsageError(f"{path}: is a device, not a file")
        file = open(path, "rb")  # noqa: SIM115 - closed by the reader
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return file if stat.S_ISREG(mode) else _spooled(file)


def _is_terminal(path: str) -> bool:
    with open(path, "rb", buffering=0) as file:
        return file.isatty()


def _spooled(stream: BinaryIO) -> BinaryIO:
    """A temporary file with the content of a pipe, which must be read twice. Closes the pipe."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the reader
    with stream:
        shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy
