"""Writes runs to the index, many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Table, delete, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from jobmeter.journal.reader import apply_labels
from jobmeter.store.index.extract import row_of, storable
from jobmeter.store.index.quick_json import column_text, column_value
from jobmeter.store.index.row_batch import RowBatch, RowCollector
from jobmeter.store.index.scan import Amendment, ScannedRun
from jobmeter.store.index.tables import job_metadata, journal_files, window_samples

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_PARAMETERS = 500
"""Ids or numbers in one query: every version of SQLite takes 999 parameters."""

T = TypeVar("T")


class RowWriter:
    """Collects runs, and writes them whenever a batch is full. Used within one transaction."""

    def __init__(self, connection: Connection, warn: Callable[[str], None]) -> None:
        self._connection = connection
        self._warn = warn
        self.file_names: dict[int, str] = {}  # by the number of the file
        self._collected = RowCollector()
        self._number: int = connection.execute(select(func.max(job_metadata.c.number))).scalar() or 0
        self._insert_runs: dict[tuple[str, ...], str] = {}  # by the columns
        self._insert_samples = _statement(connection, window_samples, tuple(window_samples.columns.keys()))

    def add(self, run: ScannedRun, record: Record, file: int) -> None:
        """Add a run, which replaces its earlier rows. The record must be valid."""
        self._collected.add(row_of(record, file, run.offset, run.line), run.samples)
        if self._collected.is_full:
            self.flush()

    def flush(self) -> None:
        self.write(self._collected.take())

    def write(self, batch: RowBatch) -> None:
        """Write runs, which replace their earlier rows."""
        if not batch.size:
            return
        numbers = range(self._number + 1, self._number + 1 + batch.size)
        self._number += batch.size
        columns = {"number": numbers, **batch.columns}
        positions, *others = batch.samples
        samples = list(zip([numbers[position] for position in positions], *others))
        try:
            self._insert(columns, samples)
        except (SQLAlchemyError, UnicodeEncodeError, OverflowError):
            # A value is not as `run` writes it, or a run is in the index already: convert values, and replace old rows.
            last = dict(self._originals(batch.columns["job_id"], batch.columns["file"]))
            self._remove(list(last))
            if last:
                kept = {numbers[position] for position in last.values()}
                self._insert(
                    {
                        name: [storable(values[position]) for position in last.values()]
                        for name, values in columns.items()
                    },
                    [tuple(map(storable, sample)) for sample in samples if sample[0] in kept],
                )

    def _originals(self, run_ids: Sequence[str], files: Sequence[int]) -> Iterator[tuple[str, int]]:
        """Ids and positions of runs, without copied runs: a copy in another file never replaces the original.

        The original is in the file that is named after the run, else in the file that was read first.
        """
        job = job_metadata.c
        holders: dict[str, int] = {}
        for some in _parts(run_ids):
            holding_rows = self._connection.execute(select(job.job_id, job.file).where(job.job_id.in_(some)))
            holders.update({row.job_id: row.file for row in holding_rows})
        for position, (run_id, file) in enumerate(zip(run_ids, files)):
            holder = holders.setdefault(run_id, file)
            name, other = self._file_name(file), self._file_name(holder)
            if holder == file or (name == f"{run_id}.jsonl" and other != name):
                holders[run_id] = file
                yield run_id, position
            else:
                self._warn(f"{name}: run {run_id} is left out: it is in {other}")

    def _file_name(self, file: int) -> str:
        files = journal_files.c
        if file not in self.file_names:
            name = self._connection.execute(select(files.name).where(files.file == file)).scalar()
            self.file_names[file] = name or ""
        return self.file_names[file]

    def _insert(self, columns: Mapping[str, Sequence[Any]], samples: list[tuple[Any, ...]]) -> None:
        names = tuple(columns)
        if names not in self._insert_runs:
            self._insert_runs[names] = _statement(self._connection, job_metadata, names)
        self._connection.exec_driver_sql("SAVEPOINT batch")
        try:
            self._connection.exec_driver_sql(self._insert_runs[names], list(zip(*columns.values())))
            if samples:
                self._connection.exec_driver_sql(self._insert_samples, samples)
        except BaseException:
            self._connection.exec_driver_sql("ROLLBACK TO batch")
            raise
        finally:
            self._connection.exec_driver_sql("RELEASE batch")

    def amend(self, amendments: Sequence[Amendment], file: int) -> None:
        """Apply later changes of labels, and removals, to runs in this file."""
        if not amendments:
            return
        self.flush()
        job = job_metadata.c
        for amendment in amendments:
            mine = (job.job_id == amendment.run_id) & (job.file == file)
            if amendment.labels is None:
                if self._connection.execute(select(job.number).where(mine)).first() is not None:
                    self._remove([amendment.run_id])
                continue
            before = self._connection.execute(select(job.labels).where(mine)).scalar()
            if before is not None:
                after = column_text(apply_labels(column_value(before), amendment.labels))
                self._connection.execute(update(job_metadata).where(mine).values(labels=after))

    def _remove(self, ids: Sequence[str]) -> None:
        job = job_metadata.c
        for some in _parts(ids):
            numbers = self._connection.execute(select(job.number).where(job.job_id.in_(some))).scalars().all()
            if numbers:
                forget_runs(self._connection, numbers)


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[at : at + _PARAMETERS] for at in range(0, len(values), _PARAMETERS))


def forget_runs(connection: Connection, numbers: Sequence[int]) -> None:
    for some in _parts(numbers):
        connection.execute(delete(window_samples).where(window_samples.c.number.in_(some)))
        connection.execute(delete(job_metadata).where(job_metadata.c.number.in_(some)))


def forget_files(connection: Connection, files: Sequence[int]) -> None:
    """Remove files that were removed or replaced from the index, with their runs."""
    for file in files:
        mine = select(job_metadata.c.number).where(job_metadata.c.file == file)
        connection.execute(delete(window_samples).where(window_samples.c.number.in_(mine)))
        connection.execute(delete(job_metadata).where(job_metadata.c.file == file))
        connection.execute(delete(journal_files).where(journal_files.c.file == file))


def _statement(connection: Connection, table: Table, columns: Sequence[str]) -> str:
    """The text of an INSERT. It takes tuples, which for thousands of rows are three times as fast as dictionaries."""
    return str(insert(table).compile(connection.engine, column_keys=list(columns)))
