"""Journals that others change while commands read them: no traceback, and the healthy run is always there."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.commands import CASES, parsed, run, tried
from tests.fuzz.mutations import encoded
from tests.fuzz.test_journals import HEALTHY, journal_lines, mutated_journal, write_healthy

pytestmark = pytest.mark.no_records

_CHANGED = 4
_ROUNDS = max(6, CASES // 5)


@contextlib.contextmanager
def changing(directory: Path) -> Iterator[None]:
    """Files that all the time grow, shrink, go, come, are replaced, or become directories and pipes."""
    stop = threading.Event()
    rng = Random(1)

    def change() -> None:
        while not stop.wait(0.001):
            number = rng.randrange(_CHANGED)
            path = directory / f"changed{number}.jsonl"
            with contextlib.suppress(OSError):
                _change(path, f"changed{number}", rng)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _change(path: Path, run_id: str, rng: Random) -> None:
    whole = b"".join(map(encoded, journal_lines(run_id)))
    action = rng.randrange(7)
    if path.is_dir():
        path.rmdir()
    elif action == 0:
        path.unlink()
    elif action == 1:
        os.truncate(path, rng.randrange(len(whole)))
    elif action == 2 and path.is_file():  # to open a pipe would wait for its reader
        with open(path, "ab") as file:
            file.write(whole[rng.randrange(len(whole)) :])
    elif action == 3:
        new = path.with_suffix(".new")
        new.write_bytes(mutated_journal(1, rng))
        os.replace(new, path)
    elif action == 4:
        path.unlink(missing_ok=True)
        os.mkfifo(path) if rng.random() < 0.5 else path.mkdir()
    else:
        path.unlink(missing_ok=True)
        path.write_bytes(whole)


def test_journals_that_change_while_they_are_read_hide_no_run(tmp_path: Path) -> None:
    store = tmp_path / "store"
    write_healthy(store)
    at = ("--store", str(store))
    with changing(store / "journal"):
        for _ in range(_ROUNDS):
            rows = parsed(run("ls", "--limit", "0", "--json", *at).out)
            assert HEALTHY in [row["id"] for row in rows]
            for row in rows:
                run("show", row["id"], *at)
                run("plot", row["id"], "-o", str(tmp_path), *at)
            for words in (("stats",), ("check", "--all", "--exit-zero"), ("size", "*"), ("export", "--windows")):
                run(*words, *at)
            run("export", "--records", "--windows", *at)
            run("label", rows[-1]["id"], "a=b", *at)
            run("gc", "--older-than", "1s", "--keep-summary", *at)
            assert 0 == run("show", HEALTHY, *at).code
            tried("rounds beside journals that change")
