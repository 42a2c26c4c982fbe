"""The store: what commands query."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Select, select
from sqlalchemy import Row as SqlRow
from sqlalchemy.exc import DatabaseError

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.errors import StoreError, UsageError
from jobmeter.journal.reader import Journal, JournalWindow, RunLocation, read_journal
from jobmeter.journal.writer import append_to_journal
from jobmeter.model import Status
from jobmeter.store.add import Arrival, index_labels, remove_runs, write_runs
from jobmeter.store.index.database import discard_index, index_in_memory, open_index, read_through_memory
from jobmeter.store.index.extract import is_record
from jobmeter.store.index.tables import job_metadata, journal_files
from jobmeter.store.index.unfinished import record_so_far
from jobmeter.store.index.update import bring_up_to_date
from jobmeter.store.prune import Pruned, prune
from jobmeter.store.query.fields import FIELDS
from jobmeter.store.query.run_names import find_workflow, resolve_run
from jobmeter.store.query.selection import Selection, condition, ordered

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_FIELD_COLUMNS = [job_metadata.c[field.column] for field in FIELDS.values()]
_JSON_FIELDS = tuple(name for name, field in FIELDS.items() if field.unit == "json")


def open_store(location: str, warn: Callable[[str], None]) -> Store:
    """The store in this directory, its index brought up to date.

    StoreError when it cannot be read; `warn` is called for journals that cannot.
    """
    return Store(location, warn)


class Store:
    """The stored runs. Journals are the truth; the index only finds them."""

    def __init__(self, location: str, warn: Callable[[str], None]) -> None:
        self.location = location
        self.directory = f"{location}/journal"
        self.index_path = f"{location}/index.db"
        self._warn = warn
        _check_readable(location)
        self._connection = self._open()
        self.update()

    def update(self) -> None:
        """Bring the index up to date."""
        try:
            bring_up_to_date(self._connection, self.directory, self._warn)
        except DatabaseError:
            self._rebuild()
            bring_up_to_date(self._connection, self.directory, self._warn)
        read_through_memory(self._connection)

    def runs(self, selection: Selection = Selection()) -> Iterator[StoredRun]:  # noqa: B008
        """The runs selected, in their order. UsageError for a selection that is not valid."""
        names = tuple(FIELDS)
        for values in self._stream(ordered(selection, _FIELD_COLUMNS)):
            row = {name: value for name, value in zip(names, values) if value is not None}
            for name in _JSON_FIELDS:
                if name in row:
                    row[name] = json.loads(row[name])
            yield row

    def condition(self, selection: Selection) -> ColumnElement[bool]:
        """The selection as a condition for a statement of one's own; its order and limit are not in it."""
        return condition(selection)

    def query(self, statement: Select[Any]) -> list[SqlRow[Any]]:
        """The answer of the index to a statement."""
        try:
            return list(self._connection.execute(statement).all())
        except DatabaseError:
            self._rebuild()
            self.update()
            return list(self._connection.execute(statement).all())

    def resolve(self, text: str) -> str:
        """The id of the run that `text` names: id, unique prefix, name (its newest run) or `last`.

        UsageError when there is none, or several begin like that; these are listed.
        """
        return resolve_run(self.query, text)

    def find_workflow(self, text: str) -> str | None:
        """The id of the workflow that `text` names by id or name; None when it has no stored run."""
        return find_workflow(self.query, text)

    def workflow_runs(self, workflow: str) -> list[int]:
        """The numbers of its runs, in their order."""
        job = job_metadata.c
        rows = self.query(select(job.workflow_run).where(job.workflow_id == workflow).distinct())
        return sorted(row.workflow_run for row in rows)

    def has(self, run_id: str) -> bool:
        return bool(self.query(select(job_metadata.c.number).where(job_metadata.c.job_id == run_id)))

    def record(self, run_id: str) -> Record:
        """The whole run record; of a run that has no end, from its windows so far."""
        return self.record_of(self.journal(run_id))

    def record_of(self, journal: Journal) -> Record:
        """The record of a run whose journal was read."""
        if journal.record is not None and is_record(journal.record):
            return journal.record
        return record_so_far(journal, Status(self._row(journal.header["id"]).status))

    def journal(self, run_id: str) -> Journal:
        """The journal of a run, with the labels it has now."""
        try:
            journal = self._read(run_id)
        except StoreError:
            self.update()  # its file may have been rewritten meanwhile
            journal = self._read(run_id)
        labels = self.labels(run_id)
        journal.header["labels"] = labels
        if journal.record is not None:
            journal.record["labels"] = labels
        return journal

    def path(self, run_id: str) -> str:
        """The file in which the run is stored."""
        row = self._row(run_id)
        rows = self.query(select(journal_files.c.name).where(journal_files.c.file == row.file))
        return f"{self.directory}/{rows[0].name}"

    def add(
        self, record: Record, windows: Iterable[JournalWindow] = (), described: Mapping[str, Any] | None = None
    ) -> str:
        """Store a run that was measured elsewhere. UsageError when one of its id is stored already."""
        return self.add_all([(record, windows, described)])[0]

    def add_all(self, runs: Iterable[Arrival]) -> list[str]:
        """Store many runs, in one file; `described` are the descriptions of their measurements, as in a header."""
        added = write_runs(self.location, runs, self.has)
        self.update()
        return added

    def labels(self, run_id: str) -> dict[str, str]:
        """The labels of a run, as they are now."""
        labels: dict[str, str] = json.loads(self._row(run_id).labels)
        return labels

    def relabel(self, run_id: str, changes: Mapping[str, str | None]) -> None:
        """Add or change labels of a run, or remove them (None)."""
        append_to_journal(self.path(run_id), {"labels": dict(changes), "run": run_id})
        index_labels(self._connection, run_id, changes)

    def remove(self, run_id: str) -> None:
        """Remove a run from the store. UsageError while it runs."""
        self.remove_all([run_id])

    def remove_all(self, run_ids: Iterable[str]) -> None:
        """Remove runs from the store; a file is removed with its last run. UsageError when one of them runs."""
        remove_runs(self._connection, self.directory, run_ids)
        self.update()

    def prune(self, selection: Selection, *, keep_summary: bool = False, dry_run: bool = False) -> Pruned:
        """Remove the selected runs that do not run, or with `keep_summary` only their windows."""
        pruned = prune(
            self._connection, self.directory, condition(selection), keep_summary=keep_summary, dry_run=dry_run
        )
        self.update()
        return pruned

    def _read(self, run_id: str) -> Journal:
        row = self._row(run_id)
        return read_journal(self.path(run_id), RunLocation(run_id, row.offset, row.line))

    def _row(self, run_id: str) -> SqlRow[Any]:
        rows = self.query(select(job_metadata).where(job_metadata.c.job_id == run_id))
        if not rows:
            raise UsageError(f"there is no run {run_id!r} in {self.location}. `jobmeter ls` lists all runs.")
        return rows[0]

    def _stream(self, statement: Select[Any]) -> Iterator[SqlRow[Any]]:
        begun = False
        try:
            for row in self._connection.execution_options(yield_per=500).execute(statement):
                begun = True
                yield row
            return
        except DatabaseError:
            self._rebuild()
            self.update()
            if begun:
                raise StoreError(
                    f"{self.index_path} was damaged and has been rebuilt. Run the command again."
                ) from None
        yield from self._connection.execute(statement)

    def _open(self) -> Connection:
        if os.path.isdir(self.location) and os.access(self.location, os.W_OK):
            return open_index(self.index_path)
        return index_in_memory()

    def _rebuild(self) -> None:
        """The index is damaged in a place that is not checked when it is opened."""
        self._connection.close()
        self._connection.engine.dispose()
        discard_index(self.index_path)
        self._connection = self._open()


def _check_readable(location: str) -> None:
    if not os.path.exists(location):
        return  # no run was stored yet
    for path in (location, f"{location}/journal"):
        if os.path.exists(path) and not os.path.isdir(path):
            raise StoreError(f"{path}: not a directory. Name a store with --store or JOBMETER_STORE.")
        if os.path.exists(path) and not os.access(path, os.R_OK | os.X_OK):
            raise StoreError(f"{path}: Permission denied. Name another store with --store or JOBMETER_STORE.")
