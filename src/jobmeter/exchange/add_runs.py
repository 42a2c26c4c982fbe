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
from jobmeter.exchange.detect import READERS, recognise
from jobmeter.exchange.duct import info_path
from jobmeter.exchange.foreign import Items, Run, Unusable
from jobmeter.store import Store
from jobmeter.store.index.tables import job_metadata

_RUNS_AT_ONCE = 5_000
_IDS_AT_ONCE = 500
"""SQLite takes no more than 999 values in a question, in the versions before 3.32."""


class Source(NamedTuple):
    """One file to read, opened and recognised."""

    name: str
    kind: str
    file: BinaryIO


class Tally(NamedTuple):
    """What became of the runs that were found."""

    new: int = 0
    known: int = 0
    unusable: int = 0
    unfinished: int = 0


def open_sources(paths: list[str], kind: str | None) -> list[Source]:
    """Open and recognise every file, before anything is kept. UsageError for the first that cannot be used."""
    names: dict[str, None] = {}
    for path in paths:
        log = info_path(path) if kind in (None, "duct") and os.path.isfile(info_path(path)) else path
        names[log] = None  # each once: the info and usage files of a log are one run
    sources = []
    for name in names:
        file = _standard_input() if name == "-" else _open(name)
        shown = "stdin" if name == "-" else name
        sources.append(Source(shown, kind or recognise(shown, file), file))
    return sources


def _open(path: str) -> BinaryIO:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise UsageError(f"{path}: is a directory. Name the files in it, for example {path.rstrip('/')}/*")
        file = open(path, "rb")  # noqa: SIM115 - closed by whoever reads it
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return file if stat.S_ISREG(mode) else _spooled(file)


def _standard_input() -> BinaryIO:
    return _spooled(sys.stdin.buffer)


def _spooled(stream: BinaryIO) -> BinaryIO:
    """A copy of what comes through a pipe: it is read twice."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever reads it
    with stream:
        shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def items(source: Source) -> Items:
    """What a file holds. UsageError now, and not when others are kept already, for one that cannot be read at all."""
    found = READERS[source.kind].read(source.name, source.file)
    return itertools.chain(list(itertools.islice(found, 1)), found)


def bring_in(store: Store, found: Items, tell: Callable[[str], None]) -> Tally:
    """Keep the runs that the store does not have yet; tell of each that cannot be used, and go on."""
    counts = {"new": 0, "known": 0, "unusable": 0, "unfinished": 0}
    waiting: dict[str, Run] = {}

    def keep() -> None:
        new = _unknown(store, waiting)
        for run in new:
            for note in run.notes:
                tell(note)
        store.add_all([(run.record, run.windows, run.described) for run in new])
        counts["new"] += len(new)
        counts["known"] += len(waiting) - len(new)
        waiting.clear()

    for item in found:
        if isinstance(item, Unusable):
            counts["unusable"] += 1
            tell(f"{item.where}: {item.why}")
        elif not isinstance(item, Run):
            counts["unfinished"] += 1
        elif item.record["id"] in waiting:
            counts["known"] += 1
        else:
            waiting[item.record["id"]] = item
            if len(waiting) == _RUNS_AT_ONCE:
                keep()
    if waiting:
        keep()
    return Tally(**counts)


def _unknown(store: Store, runs: dict[str, Run]) -> list[Run]:
    """Those of the runs that the store does not have."""
    ids, known = list(runs), set()
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        asked = job_metadata.c.job_id.in_(ids[begin : begin + _IDS_AT_ONCE])
        known |= {row[0] for row in store.query(select(job_metadata.c.job_id).where(asked))}
    return [run for run_id, run in runs.items() if run_id not in known]
