"""GNU `time -v`: the files were written by time 1.9 of Debian 12."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.reading import FIXTURES, figure, read, runs, unusable, written


def test_the_figures_are_those_of_the_file() -> None:
    record: Any = runs(read(FIXTURES / "gnutime_load.txt"))[0].record
    assert ("python3", ["python3 load.py"], 2.98) == (record["name"], record["command"], record["wall_seconds"])
    assert (1.12, "gnutime_cpu_seconds", "at least") == figure(record, "cpu_seconds")
    assert (74872 * 1024, "gnutime_maxrss", "at least") == figure(record, "memory_peak_bytes")
    assert 24797 == record["measurements"]["gnutime_minor_faults"]["total"]


@pytest.mark.parametrize(
    ("name", "status", "code", "signal"),
    [
        ("load", "completed", 0, None),
        ("fails", "failed", 3, None),
        ("killed", "killed", None, 9),  # although its exit status reads 0
        ("amid_stderr", "failed", 3, None),
    ],
)
def test_how_the_command_ended(name: str, status: str, code: int | None, signal: int | None) -> None:
    outcome = runs(read(FIXTURES / f"gnutime_{name}.txt"))[0].record["outcome"]
    assert {"status": status, "exit_code": code, "signal": signal} == outcome


def test_reports_one_after_the_other_are_runs_each() -> None:
    first, second = (run.record for run in runs(read(FIXTURES / "gnutime_appended.txt")))
    assert (["true"], ['echo a "b" \\ x\ny']) == (first["command"], second["command"])
    assert 48 * 512 == second["usage"]["read_bytes"]["value"]
    assert first["id"] != second["id"]


def test_a_run_ended_when_its_file_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, (FIXTURES / "gnutime_load.txt").read_text())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    record = runs(read(path))[0].record
    assert ("2023-11-14T22:13:17.020Z", "2023-11-14T22:13:20.000Z") == (record["started"], record["ended"])
    assert "the file's time of change" == record["provenance"]["imported"]["times_from"]


def test_the_id_does_not_change_with_the_time_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, (FIXTURES / "gnutime_load.txt").read_text())
    before = runs(read(path))[0].record["id"]
    os.utime(path, (1, 1))
    assert before == runs(read(path))[0].record["id"]


def test_a_report_that_breaks_off_is_unusable_and_the_others_are_kept(tmp_path: Path) -> None:
    whole = (FIXTURES / "gnutime_load.txt").read_text()
    items = read(written(tmp_path, whole[:300] + "\n" + whole))
    assert 1 == len(runs(items))
    assert ["line 1: the report that begins here has no end (no 'Exit status')"] == unusable(items)


def test_impossible_and_missing_figures_are_reported(tmp_path: Path) -> None:
    text = (FIXTURES / "gnutime_load.txt").read_text()
    items = read(
        written(tmp_path, text.replace("74872", "-74872") + text.replace("\tSystem time (seconds): 0.06\n", ""))
    )
    assert [
        "line 1: maximum resident set size '-74872' is not a number from 0 up",
        "line 24: it has no line 'System time (seconds)'",
    ] == unusable(items)
