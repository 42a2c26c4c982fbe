"""Runs are removed from files although there is no space for another line."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.runs import DESCRIBED, windows
from tests.store.kept import five, ids, opened


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT])
def test_a_run_in_a_file_of_many_is_removed_once_the_index_has_freed_the_space_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """A file system with quotas is not on every machine: writing fails here as it does there."""
    opened(tmp_path).add_all([(run, windows(2), DESCRIBED) for run in five()])
    warnings: list[str] = []
    store = opened(tmp_path, warnings)
    write = os.write

    def write_if_there_is_space(descriptor: int, data: bytes) -> int:
        if (tmp_path / "index.db").exists():
            raise OSError(reason, os.strerror(reason))
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_if_there_is_space)
        store.remove("bbb3")
    left = ["ddd5", "ccc4", "aab2", "aaa1"]
    assert (left, left) == (ids(store), ids(opened(tmp_path)))
    assert [f"{tmp_path}/index.db: {os.strerror(reason)}; this command makes an index in memory"] == warnings
