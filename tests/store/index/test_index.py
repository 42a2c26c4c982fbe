"""Changes of the journals and of the index together, whatever happens to the index in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from jobmeter.store.index import index as index_module
from jobmeter.store.index.database import open_index
from jobmeter.store.index.index import Index
from jobmeter.store.index.row_writer import forget_runs
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.index.update import bring_up_to_date
from tests.store.kept import five, ids, journal_of, kept, opened

LEFT = ["aab2", "bbb3", "ccc4", "ddd5"]


def remove_from_damaged_index(store: Path, warnings: list[str]) -> list[str]:
    """Remove the run aaa1 while the index is damaged, and return the runs that are left, as the same index has them."""
    index = Index(f"{store}/index.db", f"{store}/journal", warnings.append)
    index.update()

    def edit_files(connection: Connection) -> list[int]:
        mine = select(job_metadata.c.number).where(job_metadata.c.job_id == "aaa1")
        numbers = list(connection.execute(mine).scalars())
        journal_of(store, "aaa1").unlink()
        connection.exec_driver_sql("DROP TABLE window_samples")
        return numbers

    index.change(edit_files, forget_runs)
    try:
        return sorted(row.job_id for row in index.query(select(job_metadata)))
    finally:
        index.close()


def interrupt_opening(monkeypatch: pytest.MonkeyPatch, interruption: Callable[[str], None]) -> None:
    """Have another process do something as soon as the second index file was opened."""
    opened_before: list[str] = []

    def open_interrupted(path: str) -> Connection:
        mine = open_index(path)
        if opened_before:
            interruption(path)
        opened_before.append(path)
        return mine

    monkeypatch.setattr(index_module, "open_index", open_interrupted)


def test_a_change_is_in_the_index_that_replaces_a_damaged_one(tmp_path: Path) -> None:
    kept(tmp_path, *five())
    warnings: list[str] = []
    assert LEFT == remove_from_damaged_index(tmp_path, warnings)
    assert ([], LEFT) == (warnings, sorted(ids(opened(tmp_path))))


def test_a_change_removes_no_other_run_from_an_index_that_another_process_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, *five())

    def make_again(path: str) -> None:
        other = open_index(path)
        bring_up_to_date(other, f"{tmp_path}/journal", print)
        other.close()
        other.engine.dispose()

    interrupt_opening(monkeypatch, make_again)
    warnings: list[str] = []
    assert LEFT == remove_from_damaged_index(tmp_path, warnings)
    assert ([], LEFT) == (warnings, sorted(ids(opened(tmp_path))))


def test_a_change_is_complete_although_another_process_locks_the_index_that_replaces_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, *five())
    others: list[Connection] = []

    def lock(path: str) -> None:
        others.append(open_index(path))
        others[0].exec_driver_sql("BEGIN IMMEDIATE")

    warnings: list[str] = []
    with monkeypatch.context() as patch:
        interrupt_opening(patch, lock)
        patch.setattr("jobmeter.store.index.database._BUSY_SECONDS", 0.1)
        assert LEFT == remove_from_damaged_index(tmp_path, warnings)
    reason = "another program holds its lock; this command makes an index in memory"
    assert [f"{tmp_path}/index.db: {reason}"] == warnings
    others[0].exec_driver_sql("ROLLBACK")
    assert LEFT == sorted(ids(opened(tmp_path)))
