"""An index with values that it never had: commands answer from the journals, and no run is lost."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from jobmeter.store import Selection
from tests.running import ROOT
from tests.store.kept import five, ids, kept, opened
from tests.waiting import LONG


def change(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / "index.db") as index:
        index.execute(statement)


def call(folder: Path, *words: str) -> tuple[int, str, list[str]]:
    settings = {**os.environ, "PYTHONPATH": f"{ROOT}/src"}
    command = [sys.executable, "-m", "jobmeter", *words, "--store", str(folder)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=LONG)
    return done.returncode, done.stdout, done.stderr.splitlines()


@pytest.mark.parametrize("value", ["labels = 'no JSON'", "memory_peak_bytes = x'00ff'"])
def test_an_index_with_values_that_cannot_be_is_made_again(tmp_path: Path, value: str) -> None:
    kept(tmp_path, *five())
    change(tmp_path, f"update job_metadata set {value}")
    code, out, err = call(tmp_path, "ls", "--json")
    expected = f"jobmeter: {tmp_path}/index.db: has invalid values; it is rebuilt from the journals"
    assert (0, 5, [expected]) == (code, len(json.loads(out)), err)
    assert (0, out, []) == call(tmp_path, "ls", "--json")


def test_an_index_whose_tables_are_described_by_no_text_is_made_again(tmp_path: Path) -> None:
    kept(tmp_path, *five())
    index = tmp_path / "index.db"
    index.write_bytes(index.read_bytes().replace(b"CREATE TABLE", b"CREATE \xa8\xf5BLE"))
    code, out, err = call(tmp_path, "ls", "--json")
    assert (0, 5, []) == (code, len(json.loads(out)), err)


@pytest.mark.parametrize("how", ["removed", "pruned"])
def test_an_index_that_names_the_file_of_another_run_removes_no_other(tmp_path: Path, how: str) -> None:
    kept(tmp_path, *five())
    for run_id, other in (("aab2", "aaa1"), ("aaa1", "bbb3")):
        file = f"(select file from job_metadata where job_id = '{other}')"
        change(tmp_path, f"update job_metadata set file = {file} where job_id = '{run_id}'")
    store = opened(tmp_path)
    if how == "removed":
        store.remove("aab2")
    else:
        store.prune(Selection(labels={"team": "b"}))
    for path in tmp_path.glob("index.db*"):
        path.unlink()
    assert "aaa1" in ids(opened(tmp_path))
