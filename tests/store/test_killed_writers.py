"""Commands that change a store, killed at any moment: no run is lost or half there, and the next command goes on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.commands import parsed, run
from tests.runs import record
from tests.store.kept import kept, opened

KILLS = 50
RUNS = 12
IMPORTED = [f"import{number:02}" for number in range(20)]


def killed(words: tuple[str, ...], delay: float) -> None:
    """Run a command in another process, which is killed after a while if it has not ended by itself."""
    pid = os.fork()
    if pid == 0:
        try:
            run(*words)
        finally:
            os._exit(0)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def answers(store: Path) -> dict[str, Any]:
    """What every reading command has to say: each run, with its labels."""
    at = ("--store", str(store))
    listed = run("ls", "--limit", "0", "--json", *at)
    rows = parsed(listed.out)
    assert {"completed"} == {row["status"] for row in rows}
    for words in (("stats", "--json"), ("check", "--all", "--exit-zero", "--json"), ("export",), ("show", "steady")):
        assert 0 == run(*words, *at).code
    for row in rows[:3]:
        assert row["id"] == parsed(run("show", row["id"], "--json", *at).out)["id"]
    return {row["id"]: row["labels"] for row in rows}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    young = {**record("steady"), "started": "2199-01-31T12:00:00.000Z"}
    kept(tmp_path / "store", young, *(record(f"run{number:02}") for number in range(RUNS)))
    kept(tmp_path / "other", *map(record, IMPORTED))
    assert 0 == run("export", "--records", "-o", str(tmp_path / "other.jsonl"), "--store", str(tmp_path / "other")).code
    return tmp_path / "store"


def longest(command: Callable[[], object]) -> float:
    begin = time.monotonic()
    command()
    return time.monotonic() - begin


@pytest.mark.parametrize("index", ["present", "absent"])
def test_a_label_is_there_or_not_and_the_next_one_is(store: Path, index: str) -> None:
    chance = random.Random(21)
    most = longest(lambda: run("label", "steady", "first=yes", "--store", str(store)))
    for attempt in range(KILLS // 2):
        forget(store, index)
        killed(("label", "steady", f"n={attempt}", "--store", str(store)), chance.uniform(0, most))
        labels = answers(store)["steady"]
        assert labels.get("n") in (None, *map(str, range(attempt + 1)))
        assert 0 == run("label", "steady", f"after={attempt}", "--store", str(store)).code
        assert str(attempt) == answers(store)["steady"]["after"]


@pytest.mark.parametrize("index", ["present", "absent"])
def test_an_import_stores_all_runs_or_none_and_the_next_one_all(store: Path, index: str) -> None:
    chance = random.Random(22)
    source = str(store.parent / "other.jsonl")
    most = longest(lambda: run("import", source, "--store", str(store.parent / "tried")))
    for _ in range(KILLS // 2):
        forget(store, index)
        killed(("import", source, "--store", str(store)), chance.uniform(0, most))
        assert answers(store).keys() in ({"steady", *runs(RUNS)}, {"steady", *runs(RUNS), *IMPORTED})
        assert 0 == run("import", source, "--store", str(store)).code
        assert {"steady", *runs(RUNS), *IMPORTED} == answers(store).keys()
        assert 0 == run("rm", "--yes", *IMPORTED, "--store", str(store)).code


@pytest.mark.parametrize("index", ["present", "absent"])
def test_of_runs_that_are_removed_each_is_there_or_not(store: Path, index: str) -> None:
    chance = random.Random(23)
    source = str(store.parent / "other.jsonl")
    assert 0 == run("import", source, "--store", str(store)).code
    most = longest(lambda: run("rm", "--yes", *IMPORTED, "--store", str(store)))
    for _ in range(KILLS // 2):
        assert 0 == run("import", source, "--store", str(store)).code
        forget(store, index)
        killed(("rm", "--yes", *IMPORTED, "--store", str(store)), chance.uniform(0, most))
        left = answers(store).keys()
        assert {"steady", *runs(RUNS)} <= left <= {"steady", *runs(RUNS), *IMPORTED}
        remaining = sorted(left & {*IMPORTED})
        assert not remaining or 0 == run("rm", "--yes", *remaining, "--store", str(store)).code
        assert {"steady", *runs(RUNS)} == answers(store).keys()
        assert {"steady", *runs(RUNS)} == {row["id"] for row in opened(store).runs()}


@pytest.mark.parametrize("keep", [True, False], ids=["summary kept", "removed"])
def test_a_gc_leaves_each_run_as_before_or_after_and_the_next_one_ends_the_work(store: Path, keep: bool) -> None:
    chance = random.Random(24)
    words = ("gc", "--older-than", "1d", *(["--keep-summary"] if keep else []), "--store")
    shutil.copytree(store, store.parent / "tried")
    most = longest(lambda: run(*words, str(store.parent / "tried")))
    for attempt in range(KILLS // 2):
        copy = store.parent / f"copy{attempt}"
        shutil.copytree(store, copy)
        killed((*words, str(copy)), chance.uniform(0, most))
        left = answers(copy).keys()
        assert {"steady"} <= left <= {"steady", *runs(RUNS)}
        assert not keep or RUNS + 1 == len(left)
        assert 0 == run(*words, str(copy)).code
        assert ({"steady", *runs(RUNS)} if keep else {"steady"}) == answers(copy).keys()
        shutil.rmtree(copy)


def runs(number: int) -> list[str]:
    return [f"run{each:02}" for each in range(number)]


def forget(store: Path, index: str) -> None:
    if index == "absent":
        for path in store.glob("index.db*"):
            path.unlink()


def test_a_line_that_was_torn_does_not_swallow_the_next(store: Path) -> None:
    journal = store / "journal" / "steady.jsonl"
    with journal.open("ab") as file:
        file.write(json.dumps({"labels": {"torn": "yes"}, "run": "steady"}).encode()[:-4])
    assert 0 == run("label", "steady", "whole=yes", "--store", str(store)).code
    assert {"whole": "yes"} == answers(store)["steady"]
