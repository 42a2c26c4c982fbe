"""Prunes runs, or only their windows, from their files: a file is replaced by one without them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, func, select

from jobmeter.atomic_file import replacing
from jobmeter.errors import StoreError
from jobmeter.journal.reader import parse_line
from jobmeter.model import Status
from jobmeter.store.index.database import Locked, writing
from jobmeter.store.index.row_writer import forget_files
from jobmeter.store.index.tables import OPEN, index_state, job_metadata, journal_files

_WINDOWS = (b"[", b'{"columns"', b'{"processes"')


class Pruned(NamedTuple):
    runs: int
    bytes: int


class _JournalFile(NamedTuple):
    file: int
    path: str
    leaving: int  # runs of it that are selected
    all_runs: int
    size: int


def prune(
    connection: Connection, directory: str, chosen: ColumnElement[bool], *, keep_summary: bool, dry_run: bool
) -> Pruned:
    """Remove the runs chosen, except those that still run; with `keep_summary` only their windows."""
    job = job_metadata.c
    chosen = chosen & (job.status != Status.RUNNING.value)
    try:
        with writing(connection):
            runs = freed = 0
            for file in _files(connection, directory, chosen):
                leaving = set(
                    connection.execute(select(job.job_id).where(chosen & (job.file == file.file))).scalars().all()
                )
                freed += _prune_file(file, leaving, keep_summary=keep_summary, dry_run=dry_run)
                runs += file.leaving
                if not dry_run:
                    forget_files(connection, [file.file])
            if not dry_run:
                # Files that were replaced are read again: offsets changed.
                connection.execute(delete(index_state).where(index_state.c.name == "directory"))
    except Locked:
        raise StoreError("another program holds the lock of the index. Try again.") from None
    return Pruned(runs, freed)


def _files(connection: Connection, directory: str, chosen: ColumnElement[bool]) -> list[_JournalFile]:
    job, files = job_metadata.c, journal_files.c
    counts = connection.execute(select(job.file, func.count()).where(chosen).group_by(job.file))
    files_to_prune = []
    for file, leaving in counts.all():
        total = connection.execute(select(func.count()).select_from(job_metadata).where(job.file == file)).scalar() or 0
        row = connection.execute(select(files.name, files.is_open).where(files.file == file)).first()
        if row is None or row.is_open == OPEN:
            continue  # it is still being written
        path = f"{directory}/{row.name}"
        with contextlib.suppress(FileNotFoundError):
            files_to_prune.append(_JournalFile(file, path, leaving, total, os.path.getsize(path)))
    return files_to_prune


def _prune_file(file: _JournalFile, leaving: set[Any], *, keep_summary: bool, dry_run: bool) -> int:
    """Bytes freed; for a dry run, bytes that would be freed."""
    try:
        if not keep_summary and file.leaving == file.all_runs:
            if not dry_run:
                os.unlink(file.path)
            return file.size
        removed = _removed_before(file.path) | (set() if keep_summary else leaving)
        return _rewrite(file.path, _line_filter(leaving, removed), dry_run=dry_run)
    except OSError as error:
        raise StoreError(f"{file.path}: {error.strerror}") from None


def _rewrite(path: str, stays: Callable[[bytes], bool], *, dry_run: bool) -> int:
    """Replace the file by one without the removed lines. Returns their bytes; a dry run only counts them."""
    freed = 0
    with open(path, "rb") as old, open(os.devnull, "wb") if dry_run else replacing(path, binary=True) as new:
        for line in old:
            if stays(line):
                new.write(line)
            else:
                freed += len(line)
    return freed


def _removed_before(path: str) -> set[Any]:
    """The runs that lines of the file mark as removed."""
    with open(path, "rb") as file:
        entries = [parse_line(line) for line in file if line.startswith(b'{"removed"')]
    return {entry["removed"] for entry in entries if isinstance(entry, dict)}


def _line_filter(stripped: set[Any], removed: set[Any]) -> Callable[[bytes], bool]:
    """Decides, line by line of one file, which stay: no windows of runs in `stripped`, none of those in `removed`."""
    current: list[Any] = [None]

    def stays(line: bytes) -> bool:
        if line.startswith(_WINDOWS):
            return current[0] not in stripped and current[0] not in removed
        entry = parse_line(line)
        if not isinstance(entry, dict):
            return current[0] not in removed
        if "schema" in entry:
            if "shared" in entry:
                return True
            current[0] = entry.get("id")
        elif "labels" in entry or "removed" in entry:
            return entry.get("run", entry.get("removed")) not in removed
        elif "run" in entry:
            current[0] = entry["run"]
        return current[0] not in removed

    return stays
