"""The store, as commands use it: queries, and changes of stored runs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy import Row as SqlRow

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.byte_text import to_text
from jobmeter.errors import StoreError
from jobmeter.journal.reader import Journal, JournalWindow, RunLocation, read_journal
from jobmeter.model import Status
from jobmeter.store.add import Arrival, change_labels, remove_runs, write_runs
from jobmeter.store.index.index import Index
from jobmeter.store.index.quick_json import column_value
from jobmeter.store.index.tables import job_metadata, journal_files, window_samples
from jobmeter.store.index.unfinished import record_so_far
from jobmeter.store.prune import Progress, Pruned, count_prunable, prune
from jobmeter.store.query.fields import FIELDS
from jobmeter.store.query.run_names import NoSuchRun, find_workflow, resolve_run
from jobmeter.store.query.selection import Selection, condition, ordered

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_FIELD_COLUMNS = [job_metadata.c[field.column] for field in FIELDS.values()]
_JSON_FIELDS = tuple(name for name, field in FIELDS.items() if field.unit == "json")


class IndexedRun(NamedTuple):
    """Where a run is stored, and those of its fields that its journal may lack or have in an older state."""

    run_id: str
    name: str
    status: str
    started: str | None
    labels: str  # the current ones, as JSON
    path: str
    offset: int
    line: int


def open_store(location: str, warn: Callable[[str], None]) -> Store:
    """The store in this directory, its index brought up to date.

    Raises StoreError if the store cannot be read; calls `warn` for each journal that cannot be read.
    """
    return Store(location, warn)


class Store:
    """The stored runs. The journals are authoritative; the index is made from them, to find runs quickly."""

    def __init__(self, location: str, warn: Callable[[str], None]) -> None:
        self.location = location
        self.directory = f"{location}/journal"
        self.index_path = f"{location}/index.db"
        self._warn = warn
        _check_readable(location)
        self._index = Index(self.index_path, self.directory, warn)
        self.update()

    def close_when_unused(self) -> None:
        """Close the files of the index once nothing refers to this store. Commands need not: they end soon.

        SQLAlchemy by itself would keep them open until a full garbage collection, which a program may never do.
        """
        weakref.finalize(self, self._index.close).atexit = False

    def update(self) -> None:
        """Bring the index up to date."""
        self._index.update()

    def runs(self, selection: Selection = Selection()) -> Iterator[StoredRun]:  # noqa: B008
        """The selected runs, in the order of the selection. Raises UsageError if the selection is not valid."""
        names = tuple(FIELDS)
        for values in self._index.stream(ordered(selection, _FIELD_COLUMNS)):
            row = {name: value for name, value in zip(names, values) if value is not None}
            for name in _JSON_FIELDS:
                if name in row:
                    row[name] = column_value(row[name])
            yield row

    def rows(self, selection: Selection, columns: Sequence[ColumnElement[Any]]) -> Iterator[SqlRow[Any]]:
        """These columns of the selected runs, in the order of the selection, as they are in the index."""
        return self._index.stream(ordered(selection, columns))

    def indexed_runs(self, selection: Selection, *, with_windows: bool = False) -> Iterator[IndexedRun]:
        """Where the selected runs are stored, in the order of the selection; `with_windows`: only runs with windows."""
        columns = [job_metadata.c[name] for name in ("job_id", "job_name", "status", "started", "labels")]
        statement = ordered(selection, [*columns, journal_files.c.name, job_metadata.c.offset, job_metadata.c.line])
        statement = statement.join(journal_files, journal_files.c.file == job_metadata.c.file)
        if with_windows:
            mine = window_samples.c.number == job_metadata.c.number
            statement = statement.where(select(window_samples.c.window).where(mine).exists())
        for row in self._index.stream(statement):
            run_id, name, status, started, labels, file, offset, line = tuple(row)
            yield IndexedRun(run_id, name, status, started, labels, f"{self.directory}/{file}", offset, line)

    def count(self, selection: Selection) -> int:
        """How many runs are selected."""
        rows = self.query(select(func.count()).select_from(job_metadata).where(condition(selection)))
        return int(rows[0][0])

    def condition(self, selection: Selection) -> ColumnElement[bool]:
        """The selection as a condition for a statement that the caller makes, without its order and limit."""
        return condition(selection)

    def query(self, statement: Select[Any]) -> list[SqlRow[Any]]:
        """The rows that the index returns for a statement."""
        return self._index.query(statement)

    def resolve(self, text: str) -> str:
        """The id of the run that `text` names: id, unique prefix, name (its newest run) or `last`.

        Raises UsageError if there is none, or if several ids begin with `text`; it lists them.
        """
        return resolve_run(self.query, text)

    def find_workflow(self, text: str) -> str | None:
        """The id of the workflow that `text` names by id or name; None if it has no stored run."""
        return find_workflow(self.query, text)

    def workflow_runs(self, workflow: str) -> list[int]:
        """The numbers of the stored runs of a workflow, ascending."""
        job = job_metadata.c
        rows = self.query(select(job.workflow_run).where(job.workflow_id == workflow).distinct())
        return sorted(row.workflow_run for row in rows)

    def has(self, run_id: str) -> bool:
        return bool(self.query(select(job_metadata.c.number).where(job_metadata.c.job_id == run_id)))

    def record(self, run_id: str) -> Record:
        """The whole run record; of a run without an end, made from its windows so far."""
        return self.record_of(self.journal(run_id))

    def record_of(self, journal: Journal) -> Record:
        """The same as `record`, for a journal that was read already."""
        if journal.record is not None:
            return journal.record
        return record_so_far(journal, Status(self._row(journal.header["id"]).status))

    def journal(self, run_id: str) -> Journal:
        """The journal of a run, with its current labels. Raises NoSuchRun if the store does not have the run."""
        try:
            journal = self._read(run_id)
        except (StoreError, NoSuchRun):
            self.update()  # the file may have been removed since, and the run may be in another one
            journal = self._read(run_id)
        labels = self.labels(run_id)
        journal.header["labels"] = labels
        if "name" not in journal.header:
            journal.header["name"] = self._row(run_id).job_name  # neither header nor record is valid
        if journal.record is not None:
            journal.record["labels"] = labels
        return journal

    def path(self, run_id: str) -> str:
        """The file in which the run is stored."""
        return self._location(run_id)[0]

    def add(
        self, record: Record, windows: Iterable[JournalWindow] = (), described: Mapping[str, Any] | None = None
    ) -> str:
        """Store a run that was measured elsewhere. Raises UsageError if a run with its id is stored already."""
        return self.add_all([(record, windows, described)])[0]

    def add_all(self, runs: Iterable[Arrival]) -> list[str]:
        """Store many runs in one file, and return their ids. Measurements are described as in a journal's header."""
        added = write_runs(self.location, runs, self.has)
        self.update()
        return added

    def labels(self, run_id: str) -> dict[str, str]:
        """The current labels of a run."""
        labels: dict[str, str] = column_value(self._row(run_id).labels)
        return labels

    def relabel(self, run_id: str, changes: Mapping[str, str | None]) -> None:
        """Add or change labels of a run, or remove them (None)."""
        texts = {to_text(key): None if value is None else to_text(value) for key, value in changes.items()}
        change_labels(self._index, lambda: self.path(run_id), run_id, texts)

    def remove(self, run_id: str) -> None:
        """Remove a run from the store. Raises UsageError if it still runs."""
        self.remove_all([run_id])

    def remove_all(self, run_ids: Iterable[str]) -> None:
        """Remove runs from the store; a file is removed with its last run. Raises UsageError if one still runs."""
        remove_runs(self._index, self.directory, list(run_ids))
        self.update()
        self._index.shrink()

    def prune(
        self,
        selection: Selection,
        *,
        keep_summary: bool = False,
        dry_run: bool = False,
        progress: Progress = lambda done, total: None,
    ) -> Pruned:
        """Remove the selected runs, except those that still run; with `keep_summary` only their windows.

        `dry_run` only counts them. `progress` is called with the number of files that are done, and of all files.
        """
        chosen = condition(selection)
        if dry_run:
            return count_prunable(self._index, self.directory, chosen, keep_summary=keep_summary, progress=progress)
        pruned = prune(self._index, self.directory, chosen, self._warn, keep_summary=keep_summary, progress=progress)
        self.update()
        self._index.shrink()
        return pruned

    def _read(self, run_id: str) -> Journal:
        path, offset, line = self._location(run_id)
        try:
            return read_journal(path, RunLocation(run_id, offset, line))
        except StoreError:
            if not os.path.exists(path):
                raise self._no_such_run(run_id) from None
            # The file was replaced, and the run is at another offset.
            return read_journal(path, RunLocation(run_id))

    def _location(self, run_id: str) -> tuple[str, int, int]:
        """The file of a run, and where in it the run begins: offset and line."""
        job, files = job_metadata.c, journal_files.c
        # One statement, because a file gets a new number when it is replaced.
        rows = self.query(
            select(files.name, job.offset, job.line).where((job.job_id == run_id) & (files.file == job.file))
        )
        if not rows:
            raise self._no_such_run(run_id)
        return f"{self.directory}/{rows[0].name}", rows[0].offset, rows[0].line

    def _no_such_run(self, run_id: str) -> NoSuchRun:
        return NoSuchRun(f"there is no run {run_id!r} in {self.location}. `jobmeter ls` lists all runs.")

    def _row(self, run_id: str) -> SqlRow[Any]:
        rows = self.query(select(job_metadata).where(job_metadata.c.job_id == run_id))
        if not rows:
            raise self._no_such_run(run_id)
        return rows[0]


def _check_readable(location: str) -> None:
    if not os.path.exists(location):
        return  # no run was stored yet
    for path in (location, f"{location}/journal"):
        if os.path.exists(path) and not os.path.isdir(path):
            raise StoreError(f"{path}: not a directory. Name a store with --store or JOBMETER_STORE.")
        if os.path.exists(path) and not os.access(path, os.R_OK | os.X_OK):
            raise StoreError(f"{path}: Permission denied. Name another store with --store or JOBMETER_STORE.")
