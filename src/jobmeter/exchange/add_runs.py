"""Brings runs of other tools into the store: each once, however often its file is imported."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from sqlalchemy import select

from jobmeter.errors import UsageError
from jobmeter.exchange.detect import FORMATS
from jobmeter.exchange.foreign import ForeignRun, Items, UnusableRow
from jobmeter.exchange.inputs import InputFile
from jobmeter.store import Store
from jobmeter.store.index.tables import job_metadata

_RUNS_AT_ONCE = 5_000
_OFTEN = 500
"""Runs between two reports of progress."""
_IDS_AT_ONCE = 500
"""SQLite before 3.32 takes no more than 999 values in a query."""


@dataclass
class ImportCounts:
    """How many runs of a file or directory were added, in the store already, unusable or unfinished so far."""

    new: int = 0
    known: int = 0
    unusable: int = 0
    unfinished: int = 0


def items(file: InputFile, progress: Callable[[str], None] = lambda _: None) -> Items:
    """The items of a file. All of them are read and validated before the first is returned, to be stored.

    Raises UsageError if the file cannot be read at all.
    """
    opened = file.open()
    contents = _shown(_read(file, opened), file, opened, progress)
    first = list(itertools.islice(contents, _RUNS_AT_ONCE))
    if len(first) < _RUNS_AT_ONCE:
        opened.close()
        return iter(first)
    for _ in contents:
        pass
    opened.seek(0)
    return _shown(_read(file, opened), file, opened, progress)


def _read(file: InputFile, opened: BinaryIO) -> Items:
    try:
        yield from FORMATS[file.kind].read(file.path, opened)
    except OSError as error:
        raise UsageError(f"{file.path}: {error.strerror}") from None


def _shown(contents: Items, file: InputFile, opened: BinaryIO, progress: Callable[[str], None]) -> Items:
    """Pass on the items, and report how much of the file was read so far."""
    size = os.fstat(opened.fileno()).st_size
    for number, item in enumerate(contents, start=1):
        if number % _OFTEN == 0:
            progress(f"{file.path}: {number:,} runs, {min(opened.tell() / size, 1.0):.0%}" if size else file.path)
        yield item


class Adding:
    """Adds the runs that the store does not have yet, many at once; warns of each that cannot be used, and goes on."""

    def __init__(self, store: Store, warn: Callable[[str], None]) -> None:
        self._store = store
        self._warn = warn
        self._waiting: dict[str, tuple[ForeignRun, ImportCounts]] = {}

    def add(self, contents: Items, counts: ImportCounts) -> None:
        """Add the runs of a file. The last of them are stored only with those of the next file, or by `finish`."""
        for item in contents:
            if isinstance(item, UnusableRow):
                counts.unusable += 1
                self._warn(f"{item.where}: {item.why}")
            elif not isinstance(item, ForeignRun):
                counts.unfinished += 1
            elif item.record["id"] in self._waiting:
                counts.known += 1
            else:
                self._waiting[item.record["id"]] = item, counts
                if len(self._waiting) == _RUNS_AT_ONCE:
                    self.finish()

    def finish(self) -> None:
        """Store the runs that are still waiting."""
        if not self._waiting:
            return
        known_ids = _known(self._store, list(self._waiting))
        new = [run for run_id, (run, _) in self._waiting.items() if run_id not in known_ids]
        for run in new:
            for note in run.notes:
                self._warn(note)
        self._store.add_all([(run.record, run.windows, run.described) for run in new])
        for run_id, (_, counts) in self._waiting.items():
            if run_id in known_ids:
                counts.known += 1
            else:
                counts.new += 1
        self._waiting.clear()


def _known(store: Store, ids: list[str]) -> set[str]:
    """Those of the ids that the store has already."""
    stored_ids: set[str] = set()
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        these = job_metadata.c.job_id.in_(ids[begin : begin + _IDS_AT_ONCE])
        stored_ids |= {row[0] for row in store.query(select(job_metadata.c.job_id).where(these))}
    return stored_ids
