"""`gc` beside readers and writers: each finds every run, as it was before or as it is after."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobmeter.journal.writer import SCHEMA
from tests.running import ROOT
from tests.runs import DESCRIBED, record
from tests.store.kept import ids, one_file, opened
from tests.waiting import LONG

ALONE, TOGETHER = 1000, 400
"""Runs in files of their own, and in each of two files of many runs."""
ALL = ALONE + 2 * TOGETHER
LABELLED = "both0007"


def lines_of(run_id: str) -> list[Any]:
    run = record(run_id, "old", cpu_seconds=1.0, wall_seconds=3.0)
    header = {"schema": SCHEMA, **{key: run[key] for key in ("id", "name", "command", "started")}}
    columns = {"columns": ["proc_cpu_percent", "proc_rss_total"]}
    return [{**header, "measurements": DESCRIBED}, columns, [1.0, 10, 80.0, 1 << 20], [2.0, 10, 80.0, 2 << 20],
            {"record": run}]  # fmt: skip


@pytest.fixture
def old_runs(tmp_path: Path) -> Path:
    for number in range(ALONE):
        one_file(tmp_path, f"alone{number:04}", lines_of(f"alone{number:04}"))
    for name in ("both", "more"):
        shared: list[Any] = [{"schema": SCHEMA, "shared": {}}]
        one_file(tmp_path, name, sum((lines_of(f"{name}{number:04}") for number in range(TOGETHER)), shared))
    opened(tmp_path)
    return tmp_path


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    settings = {**os.environ, "JOBMETER_STORE": str(folder), "PYTHONPATH": f"{ROOT}/src"}
    return subprocess.Popen(
        [sys.executable, "-m", "jobmeter", *words], env=settings, cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LONG)
    return process.returncode, out, err


def do(folder: Path, *words: str) -> tuple[int, str, str]:
    return finish(start(folder, *words))


def gc(folder: Path, *more: str) -> subprocess.Popen[str]:
    return start(folder, "gc", "--older-than", "1d", *more)


def stripped(folder: Path) -> int:
    """How many files of one run have lost their windows."""
    return sum(b'"columns"' not in path.read_bytes() for path in (folder / "journal").glob("alone*.jsonl"))


def test_every_answer_beside_gc_has_all_runs(old_runs: Path) -> None:
    pruning = gc(old_runs, "--keep-summary")
    reading: Sequence[tuple[str, ...]] = (
        ("ls", "--json"), ("show", LABELLED, "--json"), ("stats", "--json"), ("export", "--format", "jsonl"),
        ("label", LABELLED, "team=a"), ("export", "--windows", "more0399"), ("show", "alone0999"),
    )  # fmt: skip
    rounds = 0
    while pruning.poll() is None or not rounds:
        for words in reading:
            code, out, err = do(old_runs, *words)
            # `gc` may have removed the time series of this run already.
            note = "jobmeter: none of these runs has a time series\n" if "--windows" in words else ""
            assert (0, True) == (code, err in ("", note)), (words, err)
            if words[0] == "ls":
                assert ALL == len(json.loads(out))
            elif words == reading[3]:
                assert ALL == len(out.splitlines())
            elif words[0] == "stats":
                assert f'"runs": {ALL}' in out
        rounds += 1
    assert (0, "") == finish(pruning)[:2]
    store = opened(old_runs)
    assert (ALL, ALONE) == (len(ids(store)), stripped(old_runs))
    assert [] == store.journal("more0399").windows
    assert {"team": "a"} == store.labels(LABELLED) == store.record(LABELLED)["labels"]


def test_runs_that_are_removed_or_measured_beside_gc_are_as_without_it(old_runs: Path) -> None:
    pruning = gc(old_runs, "--keep-summary")
    removed = [f"alone{number:04}" for number in (5, 500, 900)] + ["both0003"]
    for number, run_id in enumerate(removed):
        code, _, err = do(old_runs, "rm", "--yes", run_id)
        assert (0, "jobmeter: removed 1 run") == (code, err.splitlines()[-1])
        assert (0, "") == do(old_runs, "run", "--quiet", "--name", f"new{number}", "--", "true")[::2]
    assert 0 == finish(pruning)[0]
    expected = {row["id"] for row in opened(old_runs).runs()}
    (old_runs / "index.db").unlink()
    assert expected == {row["id"] for row in opened(old_runs).runs()}
    assert ALL == len(expected)
    assert not expected & set(removed)


def test_two_gcs_and_one_who_makes_the_index_do_not_disturb_each_other(old_runs: Path) -> None:
    (old_runs / "index.db").unlink()
    commands = [gc(old_runs, "--keep-summary"), gc(old_runs, "--keep-summary"), start(old_runs, "ls", "--json")]
    ended = [finish(process) for process in commands]
    assert [0, 0, 0] == [code for code, _, _ in ended]
    assert ALL == len(json.loads(ended[2][1]))
    assert (ALL, ALONE) == (len(ids(opened(old_runs))), stripped(old_runs))


@pytest.mark.parametrize("keep", [True, False], ids=["summary kept", "removed"])
def test_a_gc_that_is_killed_leaves_every_run_as_before_or_after(old_runs: Path, keep: bool) -> None:
    """Also a run of a file of many, of which only some are pruned."""
    chance = random.Random(4)
    one_file(old_runs, "mixed", [*lines_of("mixed-old"), *young("mixed-young")])
    for _ in range(8):
        pruning = gc(old_runs, *(["--keep-summary"] if keep else []))
        time.sleep(chance.uniform(0.3, 2.0))
        pruning.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
        finish(pruning)
        store = opened(old_runs)
        listed = set(ids(store))
        for run_id in ("mixed-young", *chance.sample(sorted(listed), min(20, len(listed)))):
            assert run_id == store.record(run_id)["id"]
        if keep:
            assert ALL + 2 == len(listed)
        (old_runs / "index.db").unlink()
        assert listed == set(ids(opened(old_runs)))


def young(run_id: str) -> list[Any]:
    lines = lines_of(run_id)
    for part in (lines[0], lines[-1]["record"]):
        part["started"] = "2199-01-31T12:00:00.000Z"
    return lines


def test_the_index_shrinks_when_most_runs_are_removed(old_runs: Path) -> None:
    one_file(old_runs, "young", young("young"))
    opened(old_runs)
    before = (old_runs / "index.db").stat().st_size
    assert 0 == finish(gc(old_runs))[0]
    assert ["young"] == ids(opened(old_runs))
    assert (old_runs / "index.db").stat().st_size < before / 2
