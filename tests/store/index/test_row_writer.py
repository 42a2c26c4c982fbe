"""Rows of the index, written and removed many at once."""

from __future__ import annotations

import sqlite3
import sys

import pytest
from sqlalchemy import Table, func, select

from jobmeter.analyse.timeline import WindowSample
from jobmeter.store.index.database import index_in_memory, raw_connection, writing
from jobmeter.store.index.row_batch import FULL
from jobmeter.store.index.row_writer import RowWriter, forget_runs
from jobmeter.store.index.scan import ScannedRun
from jobmeter.store.index.tables import job_metadata, window_samples
from tests.runs import record

RUNS = 1200


@pytest.mark.skipif(sys.version_info < (3, 11), reason="older versions of Python cannot lower a limit of SQLite")
def test_more_runs_are_removed_at_once_than_old_versions_of_sqlite_take_parameters() -> None:
    connection = index_in_memory()
    with writing(connection):
        rows = RowWriter(connection, print)
        for number in range(RUNS):
            run = ScannedRun(f"run{number}", None, 0, 1, [WindowSample(1.0, 80.0, 1, 1)])
            rows.add(run, record(f"run{number}"), 1)
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


def test_figures_that_only_some_runs_have_are_those_of_these_runs() -> None:
    """Columns without any value are left out of a batch: of the first one all, of the second one none of these."""
    connection = index_in_memory()
    some_have: list[dict[str, float]] = [{"gpus_peak": 2}, {"energy_joules": 0}, {"gpus_peak": 1, "energy_joules": 5.5}]
    figures: list[dict[str, float]] = [*[{}] * (FULL + 1), *some_have, {}]
    with writing(connection):
        rows = RowWriter(connection, print)
        for number, usage in enumerate(figures):
            run = ScannedRun(f"run{number}", None, 0, 1, [])
            rows.add(run, record(f"run{number}", "train", "completed", **usage), 1)
        rows.flush()
    job = job_metadata.c
    stored = connection.execute(select(job.job_id, job.gpus_peak, job.energy_joules).order_by(job.number)).all()
    expected = [(f"run{n}", usage.get("gpus_peak"), usage.get("energy_joules")) for n, usage in enumerate(figures)]
    assert expected == [tuple(row) for row in stored]


def test_samples_stay_with_their_run_where_a_copy_of_another_is_left_out() -> None:
    connection = index_in_memory()
    warnings: list[str] = []
    with writing(connection):
        rows = RowWriter(connection, warnings.append)
        rows.file_names.update({1: "one.jsonl", 2: "two.jsonl"})
        for run_id, file, level in (("a", 1, 10), ("b", 1, 20), ("b", 2, 30), ("c", 2, 40)):
            samples = [WindowSample(1.0, None, level, 1), WindowSample(2.0, None, level + 1, 1)]
            rows.add(ScannedRun(run_id, None, 0, 1, samples), record(run_id), file)
        rows.flush()
    job, sample = job_metadata.c, window_samples.c
    joined = select(job.job_id, sample.window, sample.memory_bytes).where(job.number == sample.number)
    expected = [("a", 0, 10), ("a", 1, 11), ("b", 0, 20), ("b", 1, 21), ("c", 0, 40), ("c", 1, 41)]
    assert expected == [tuple(row) for row in connection.execute(joined.order_by(job.job_id, sample.window))]
    assert ["two.jsonl: run b is left out: it is in one.jsonl"] == warnings
