"""Runs as a portable SQLite database."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobmeter.exchange.database import write_database
from jobmeter.store import Selection
from tests.store.kept import five, kept


@pytest.mark.parametrize(
    ("selections", "expected"),
    [
        ([Selection()], ["aaa1", "aab2", "bbb3", "ccc4", "ddd5"]),
        ([Selection(where=f'id = "{run_id}"') for run_id in ("ccc4", "aaa1")], ["ccc4", "aaa1"]),
    ],
    ids=["all", "named"],
)
def test_runs_are_numbered_oldest_first_or_in_the_order_of_their_names(
    tmp_path: Path, selections: Sequence[Selection], expected: list[str]
) -> None:
    path = str(tmp_path / "runs.db")
    assert len(expected) == write_database(path, kept(tmp_path / "store", *five()), selections)
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT job_id, run_id FROM job_metadata ORDER BY job_id").fetchall()
    assert list(enumerate(expected, start=1)) == rows
