"""Adding runs that were measured elsewhere, changing labels, removing runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select, update

from jobmeter.errors import StoreError, UsageError
from jobmeter.journal.reader import JournalWindow, apply_labels
from jobmeter.journal.writer import JournalFile, JournalWriter, append_to_journal, shared_journal
from jobmeter.model import Status
from jobmeter.record.read import identity_of
from jobmeter.store.index.database import Locked, remove_file, writing
from jobmeter.store.index.extract import labels_text
from jobmeter.store.index.row_writer import forget_runs
from jobmeter.store.index.tables import job_metadata, journal_files

if TYPE_CHECKING:
    from jobmeter.record.types import Record

Arrival = tuple["Record", Iterable[JournalWindow], Mapping[str, Any] | None]
"""A record, its windows, and the descriptions of what was measured."""


def write_runs(location: str, runs: Iterable[Arrival], has: Callable[[str], bool]) -> list[str]:
    """Write runs to one new journal, and return their ids."""
    added: list[str] = []
    file: JournalFile | None = None
    try:
        for record, windows, described in runs:
            run_id = str(record["id"])
            if has(run_id) or run_id in added:
                raise UsageError(f"run {run_id} is in the store already")
            if file is None:
                file = shared_journal(location, f"{run_id}-added", {})
            _write_run(file, record, windows, described)
            added.append(run_id)
    finally:
        if file is not None:
            file.sync()
            file.close()
    if file is not None and file.failed is not None:
        raise StoreError(file.failed)
    return added


def _write_run(
    file: JournalFile, record: Record, windows: Iterable[JournalWindow], described: Mapping[str, Any] | None
) -> None:
    writer = JournalWriter("", str(record["id"]), shared=file)
    about = described or {
        key: {"unit": entry["unit"], "kind": entry["kind"]} for key, entry in record.get("measurements", {}).items()
    }
    writer.begin({**identity_of(record), "measurements": dict(about)})
    for window in windows:
        writer.window(window.seconds, window.samples, window.cells, [])
    writer.record(record)


def index_labels(connection: Connection, run_id: str, changes: Mapping[str, str | None]) -> None:
    """Change labels in the index as they were in the journal."""
    mine = job_metadata.c.job_id == run_id
    try:
        with writing(connection):
            before = connection.execute(select(job_metadata.c.labels).where(mine)).scalar()
            after = labels_text(apply_labels(json.loads(before or "{}"), dict(changes)))
            connection.execute(update(job_metadata).where(mine).values(labels=after))
    except Locked:
        raise StoreError("another program holds the lock of the index. Try again.") from None


def remove_runs(connection: Connection, directory: str, run_ids: Iterable[str]) -> None:
    """Remove runs from the index and from their files; a file is removed with its last run."""
    job = job_metadata.c
    try:
        with writing(connection):
            rows = []
            for run_id in run_ids:
                row = connection.execute(
                    select(job.number, job.job_id, job.status, job.file).where(job.job_id == run_id)
                ).first()
                if row is None:
                    raise UsageError(f"there is no run {run_id!r}. `jobmeter ls` lists all runs.")
                if row.status == Status.RUNNING:
                    raise UsageError(f"run {run_id} is still running; end it first")
                rows.append(row)
            for row in rows:
                _remove_from_file(connection, directory, row.job_id, row.file)
                forget_runs(connection, [row.number])
    except Locked:
        raise StoreError("another program holds the lock of the index. Try again.") from None


def _remove_from_file(connection: Connection, directory: str, run_id: str, file: int) -> None:
    name = connection.execute(select(journal_files.c.name).where(journal_files.c.file == file)).scalar()
    path = f"{directory}/{name}"
    others = connection.execute(
        select(func.count()).select_from(job_metadata).where(job_metadata.c.file == file)
    ).scalar()
    if others and others > 1:
        append_to_journal(path, {"removed": run_id})
        return
    remove_file(path)
