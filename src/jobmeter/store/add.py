"""Adding runs that were measured elsewhere, changing labels, removing runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, func, select, update

from jobmeter.errors import StoreError, UsageError
from jobmeter.journal.reader import JournalWindow, apply_labels, begins_with_another
from jobmeter.journal.writer import JournalFile, JournalWriter, append_to_journal
from jobmeter.links import directory_of
from jobmeter.model import Status
from jobmeter.record.read import identity_of
from jobmeter.record.validate import check_record
from jobmeter.store.index.database import remove_file
from jobmeter.store.index.index import Index, lacks_space
from jobmeter.store.index.quick_json import column_text, column_value
from jobmeter.store.index.row_writer import forget_runs
from jobmeter.store.index.tables import OPEN, job_metadata, journal_files

if TYPE_CHECKING:
    from jobmeter.record.types import Record

Arrival = tuple["Record", Iterable[JournalWindow], Mapping[str, Any] | None]
"""A record, its windows, and the descriptions of what was measured."""


def write_runs(location: str, runs: Iterable[Arrival], has: Callable[[str], bool]) -> list[str]:
    """Write runs to one new journal, all or none of them, and return their ids.

    Raises UsageError if a record is not valid, or if `has` says that its run is stored already.
    """
    added: dict[str, None] = {}
    file: JournalFile | None = None
    name = ""
    try:
        for record, windows, described in runs:
            problem = check_record(record)
            if problem is not None:
                raise UsageError(f"the record is not valid: {problem.lstrip('. ')}")
            run_id = record["id"]
            if has(run_id) or run_id in added:
                raise UsageError(f"run {run_id} is in the store already")
            if file is None:
                name = f"{run_id}-added-{os.urandom(4).hex()}.jsonl"
                # Readers ignore a file of this name; `gc` removes it if this command is killed.
                file = JournalFile(f"{location}/journal/.{name}.new", {})
            _write_run(file, record, windows, described)
            added[run_id] = None
        if file is not None:
            _put_in_place(file, name)
    except BaseException:
        if file is not None:
            with contextlib.suppress(StoreError):
                remove_file(file.path)
        raise
    finally:
        if file is not None:
            file.close()
    return list(added)


def _put_in_place(file: JournalFile, name: str) -> None:
    """Sync a complete journal to disk, then give it the name under which readers find it."""
    file.sync()
    if file.failed is not None:
        raise StoreError(file.failed)
    try:
        with directory_of(file.path) as directory:
            os.rename(os.path.basename(file.path), name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError as error:
        raise StoreError(f"{file.path}: {error.strerror}") from None


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


def change_labels(index: Index, path: Callable[[], str], run_id: str, changes: Mapping[str, str | None]) -> None:
    """Change labels of a run in its journal and in the index."""
    mine = job_metadata.c.job_id == run_id

    def edit_index(connection: Connection, _: None) -> None:
        before = connection.execute(select(job_metadata.c.labels).where(mine)).scalar()
        after = column_text(apply_labels(column_value(before or "{}"), dict(changes)))
        connection.execute(update(job_metadata).where(mine).values(labels=after))

    index.change(lambda _: append_to_journal(path(), {"labels": dict(changes), "run": run_id}), edit_index)


class _Removal(NamedTuple):
    """The result of an attempt to remove runs."""

    numbers: list[int]  # of runs that were removed from their files
    rest: list[str]  # ids of the other runs
    error: StoreError | None


def remove_runs(index: Index, directory: str, run_ids: Sequence[str]) -> None:
    """Remove runs from their files and from the index; a file is removed with its last run."""
    ids = list(dict.fromkeys(run_ids))
    while ids:
        removal = index.change(
            lambda connection, ids=ids: _remove_from_files(connection, directory, ids),  # type: ignore[misc]
            lambda connection, removal: forget_runs(connection, removal.numbers),
        )
        ids = removal.rest
        if removal.error is not None:
            cause = removal.error.__cause__
            if not lacks_space(cause) or not index.is_in_file:
                raise removal.error
            index.leave_file(cause)  # that frees space for a line


def _remove_from_files(connection: Connection, directory: str, run_ids: Sequence[str]) -> _Removal:
    by_file: dict[int, list[Any]] = {}
    for run_id in run_ids:
        row = _removable(connection, run_id)
        by_file.setdefault(row.file, []).append(row)
    total = {file: _count_runs(connection, file) for file in by_file}
    removal = _Removal([], [], None)
    # Files that are removed as a whole come first: that frees space, which appending a line may need.
    for file, rows in sorted(by_file.items(), key=lambda item: len(item[1]) < total[item[0]]):
        stored = connection.execute(select(journal_files).where(journal_files.c.file == file)).one()
        path = f"{directory}/{stored.name}"
        try:
            is_whole = len(rows) == total[file] and stored.is_open != OPEN
            if is_whole and not begins_with_another(path, {row.job_id for row in rows}):
                remove_file(path)
                removal.numbers.extend(row.number for row in rows)
            else:
                for row in rows:
                    append_to_journal(path, {"removed": row.job_id})
                    removal.numbers.append(row.number)
        except StoreError as error:
            left = [row.job_id for rows in by_file.values() for row in rows if row.number not in removal.numbers]
            return removal._replace(rest=left, error=error)
    return removal


def _removable(connection: Connection, run_id: str) -> Any:
    job = job_metadata.c
    row = connection.execute(
        select(job.number, job.job_id, job.status, job.file).where(job.job_id == run_id)
    ).first()  # fmt: skip
    if row is None:
        raise UsageError(f"there is no run {run_id!r}. `jobmeter ls` lists all runs.")
    if row.status == Status.RUNNING:
        raise UsageError(f"run {run_id} is still running; end it first")
    return row


def _count_runs(connection: Connection, file: int) -> int:
    statement = select(func.count()).select_from(job_metadata).where(job_metadata.c.file == file)
    return connection.execute(statement).scalar() or 0
