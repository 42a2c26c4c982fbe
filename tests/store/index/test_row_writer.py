"""Rows of the index, written and removed many at once."""

from __future__ import annotations

import sqlite3
import sys

import pytest
from sqlalchemy import Table, func, select

from jobmeter.store.index.database import index_in_memory, raw_connection, writing
from jobmeter.store.index.extract import row_of
from jobmeter.store.index.row_writer import RowWriter, forget_runs
from jobmeter.store.index.tables import job_metadata, window_samples
from tests.runs import record

RUNS = 1200


@pytest.mark.skipif(sys.version_info < (3, 11), reason="older versions of Python cannot lower a limit of SQLite")
def test_more_runs_are_removed_at_once_than_old_versions_of_sqlite_take_parameters() -> None:
    connection = index_in_memory()
    with writing(connection):
        rows = RowWriter(connection, print)
        for number in range(RUNS):
            rows.add_row(row_of(record(f"run{number}"), 1, 0, 1), [(1.0, 80.0, 1, 1)])
        rows.flush()
    if sys.version_info >= (3, 11):
        raw_connection(connection).setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)

    def counts() -> list[int]:
        tables: tuple[Table, ...] = (job_metadata, window_samples)
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]

    assert [RUNS, RUNS] == counts()
    with writing(connection):
        forget_runs(connection, range(1, RUNS))
    assert [1, 1] == counts()
