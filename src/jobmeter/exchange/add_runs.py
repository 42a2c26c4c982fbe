"""Brings runs of other tools into the store: each once, however often its file is imported."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from sqlalchemy import select

from jobmeter.errors import UsageError
from jobmeter.exchange.detect import FORMATS, recognise
from jobmeter.exchange.duct import info_path
from jobmeter.exchange.foreign import ForeignRun, Items, UnusableRow
from jobmeter.store import Store
from jobmeter.store.index.tables import job_metadata

_RUNS_AT_ONCE = 5_000
_IDS_AT_ONCE = 500
"""SQLite takes no more than 999 values in a query, in the versions before 3.32."""


class InputFile(NamedTuple):
    """One file to read, opened and recognised."""

    name: str
    kind: str
    file: BinaryIO


class ImportCounts(NamedTuple):
    """How many runs of a file were added, known, unusable or unfinished."""

    new: int = 0
    known: int = 0
    unusable: int = 0
    unfinished: int = 0


def open_files(paths: list[str], kind: str | None) -> list[InputFile]:
    """Open and recognise every file, before anything is stored. UsageError for the first that cannot be used."""
    names: dict[str, None] = {}
    for path in paths:
        log = info_path(path) if kind in (None, "duct") and os.path.isfile(info_path(path)) else path
        names[log] = None  # each once: the info and usage files of a log are one run
    files = []
    for name in names:
        file = _standard_input() if name == "-" else _open(name)
        shown = "stdin" if name == "-" else name
        files.append(InputFile(shown, kind or recognise(shown, file), file))
    return files


def _open(path: str) -> BinaryIO:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise UsageError(f"{path}: is a directory. Name the files in it, for example {path.rstrip('/')}/*")
        file = open(path, "rb")  # noqa: SIM115 - closed by the reader
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return file if stat.S_ISREG(mode) else _spooled(file)


def _standard_input() -> BinaryIO:
    return _spooled(sys.stdin.buffer)


def _spooled(stream: BinaryIO) -> BinaryIO:
    """A copy of what is read from a pipe: it is needed twice."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the reader
    with stream:
        shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def items(file: InputFile) -> Items:
    """The items of a file. UsageError before anything is stored, for a file that cannot be read at all."""
    contents = FORMATS[file.kind].read(file.name, file.file)
    return itertools.chain(list(itertools.islice(contents, 1)), contents)


def add_runs(store: Store, contents: Items, warn: Callable[[str], None]) -> ImportCounts:
    """Add the runs that the store does not have yet; warn of each that cannot be used, and go on."""
    counts = {"new": 0, "known": 0, "unusable": 0, "unfinished": 0}
    waiting: dict[str, ForeignRun] = {}

    def add_waiting() -> None:
        new = _missing(store, waiting)
        for run in new:
            for note in run.notes:
                warn(note)
        store.add_all([(run.record, run.windows, run.described) for run in new])
        counts["new"] += len(new)
        counts["known"] += len(waiting) - len(new)
        waiting.clear()

    for item in contents:
        if isinstance(item, UnusableRow):
            counts["unusable"] += 1
            warn(f"{item.where}: {item.why}")
        elif not isinstance(item, ForeignRun):
            counts["unfinished"] += 1
        elif item.record["id"] in waiting:
            counts["known"] += 1
        else:
            waiting[item.record["id"]] = item
            if len(waiting) == _RUNS_AT_ONCE:
                add_waiting()
    if waiting:
        add_waiting()
    return ImportCounts(**counts)


def _missing(store: Store, runs: dict[str, ForeignRun]) -> list[ForeignRun]:
    """Those of the runs that the store does not have."""
    ids, stored_ids = list(runs), set()
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        these = job_metadata.c.job_id.in_(ids[begin : begin + _IDS_AT_ONCE])
        stored_ids |= {row[0] for row in store.query(select(job_metadata.c.job_id).where(these))}
    return [run for run_id, run in runs.items() if run_id not in stored_ids]
