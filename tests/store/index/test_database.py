"""Opening the database of an index that other processes open and close at the same time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jobmeter.store.index.database import open_index


def test_an_index_that_another_process_closes_at_the_same_time_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "index.db")
    other = open_index(path)
    other.exec_driver_sql("CREATE TABLE something (value)")
    log = f"{path}-wal"
    assert os.path.getsize(log) > 0
    look = os.stat

    def look_and_close(file: Any, **options: Any) -> os.stat_result:
        """The other process closes the index, and so removes its log, after this process looked at the log."""
        state = look(file, **options)
        if file == log and not other.closed:
            other.close()
            other.engine.dispose()
        return state

    monkeypatch.setattr(os, "stat", look_and_close)
    mine = open_index(path)
    assert (True, True) == (other.closed, not mine.closed)
    mine.close()
    mine.engine.dispose()
