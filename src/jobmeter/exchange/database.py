"""Runs as a portable SQLite database: one file with `job_metadata` and `job_resource_samples`, for SQL and other tools.

`job_id` is a number: that of the job in its workflow, if all runs are of one workflow; otherwise runs are numbered from
1, the oldest first, or in the order in which they were named. `run_id` is the id of the run in jobmeter.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from jobmeter.errors import JobmeterError
from jobmeter.exchange.destination import destination
from jobmeter.exchange.tables import Column, run_columns, run_rows
from jobmeter.store.index.tables import job_metadata, window_samples

if TYPE_CHECKING:
    from jobmeter.store import Selection, Store

_TYPES = {"text": "TEXT", "time": "TEXT", "whole": "INTEGER", "number": "REAL"}
_RENAMED = {"id": "run_id", "name": "job_name"}
_SAMPLES = """
CREATE TABLE job_resource_samples (
    job_id INTEGER NOT NULL, job_name TEXT NOT NULL, timestamp TEXT, cpu_percent REAL, memory_bytes INTEGER,
    num_processes INTEGER, run_id TEXT NOT NULL, seconds REAL NOT NULL
)
"""
_SAMPLES_OF_RUNS = """
INSERT INTO job_resource_samples
SELECT job_id, job_name, strftime('%Y-%m-%dT%H:%M:%fZ', julianday(started) + seconds / 86400.0),
       samples.cpu_percent, samples.memory_bytes, samples.num_processes, run_id, seconds
FROM samples JOIN job_metadata USING (run_id) ORDER BY job_id, job_metadata.started, samples.position
"""
_AT_ONCE = 500


def write_database(
    path: str, store: Store, selections: Sequence[Selection], show: Callable[[str], None] = lambda _: None
) -> int:
    """Write the selected runs, and return their number. Raises JobmeterError if the file cannot be written."""
    with tempfile.TemporaryDirectory(prefix="jobmeter-") as folder:
        made = f"{folder}/runs.db"
        try:
            with contextlib.closing(sqlite3.connect(made)) as database:
                count = _fill(database, store, selections, lambda done: show(f"{path}: {done:,} runs"))
                database.execute("VACUUM")
        except sqlite3.Error as error:
            raise JobmeterError(f"{path}: {error} in {folder}. Nothing was written there.") from None
        with destination(path, binary=True) as file, open(made, "rb") as content:
            shutil.copyfileobj(content, file, 1 << 20)
    return count


def _fill(
    database: sqlite3.Connection, store: Store, selections: Sequence[Selection], show: Callable[[int], None]
) -> int:
    columns = [column._replace(name=_RENAMED.get(column.name, column.name)) for column in run_columns()]
    database.execute("PRAGMA journal_mode = OFF")
    database.execute(_table_of_runs(columns))
    database.execute("CREATE TEMP TABLE samples (run_id, position, seconds, cpu_percent, memory_bytes, num_processes)")
    count = 0
    oldest_first = [each._replace(descending=False) for each in selections]
    for batch in run_rows(store, oldest_first, with_lists=False):
        marks = ", ".join("?" * (len(columns) + 2))
        database.executemany(f"INSERT INTO job_metadata VALUES ({marks})", [(0, None, *row) for row in batch])
        database.executemany(
            "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?)",
            _samples(store, [row[0] for row in batch]),
        )
        count += len(batch)
        show(count)
    _number_jobs(database)
    database.execute(_SAMPLES)
    database.execute(_SAMPLES_OF_RUNS)
    database.execute("DROP TABLE samples")
    database.execute("CREATE INDEX samples_by_job ON job_resource_samples (job_id, seconds)")
    database.execute("CREATE UNIQUE INDEX job_by_run ON job_metadata (run_id)")
    database.commit()
    return count


def _table_of_runs(columns: Sequence[Column]) -> str:
    cells = ", ".join(f'"{column.name}" {_TYPES[column.type]}' for column in columns)
    return f"CREATE TABLE job_metadata (job_id INTEGER NOT NULL, attempt INTEGER, {cells})"


def _samples(store: Store, run_ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    job, sample = job_metadata.c, window_samples.c
    columns = (job.job_id, sample.window, sample.seconds, sample.cpu_percent, sample.memory_bytes, sample.num_processes)
    for at in range(0, len(run_ids), _AT_ONCE):
        some = run_ids[at : at + _AT_ONCE]
        statement = select(*columns).where((sample.number == job.number) & job.job_id.in_(some))
        yield from (tuple(row) for row in store.query(statement))


def _number_jobs(database: sqlite3.Connection) -> None:
    """Set the `job_id` of every run, and the attempt of runs of workflows."""
    database.execute("""
        UPDATE job_metadata SET attempt = json_extract(workflow_job, '$.attempt') WHERE workflow_job IS NOT NULL
    """)
    (of_one_workflow,) = database.execute("""
        SELECT count(*) > 0 AND count(workflow) = count(*) AND count(DISTINCT workflow) = 1
               AND count(json_extract(workflow_job, '$.job_id')) = count(*) FROM job_metadata
    """).fetchone()
    number = "json_extract(workflow_job, '$.job_id')" if of_one_workflow else "rowid"
    database.execute(f"UPDATE job_metadata SET job_id = {number}")
