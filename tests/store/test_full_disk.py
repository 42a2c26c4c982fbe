"""A store on a full disk, of someone else, or with something else in place of its index: all runs are listed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobmeter.store import Selection
from tests.parts import need_root
from tests.running import NOBODY, ROOT, workplace
from tests.runs import record
from tests.small_disk import empty, fill, small_disk
from tests.store.kept import five, ids, journal_of, kept, one_file, opened
from tests.store.test_gc_beside_others import lines_of, young
from tests.waiting import LONG

READING = (
    ("ls", "--json"), ("show", "aaa1"), ("stats", "--json"), ("check",), ("size", "train"), ("export",),
    ("compare", "aaa1", "aab2"), ("plot", "aaa1", "-o", "@"),
)  # fmt: skip
RUNS = 40


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB. The largest store here takes 4, and more if its index is made in several turns."""
    with small_disk(tmp_path, "8m") as disk:
        yield disk


def in_another_process(function: Callable[[], object]) -> None:
    """So that this process holds no file of the disk open: its space would not be freed."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:  # noqa: BLE001 - the parent sees the exit code alone
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def do(store: Path, *words: str) -> tuple[int, str, list[str]]:
    settings = {**os.environ, "JOBMETER_STORE": str(store), "PYTHONPATH": f"{ROOT}/src"}
    command = [sys.executable, "-m", "jobmeter", *(word.replace("@", workplace()) for word in words)]
    done = subprocess.run(command, env=settings, cwd="/", capture_output=True, text=True, check=False, timeout=LONG)
    return done.returncode, done.stdout, done.stderr.splitlines()


def forget_index(store: Path) -> None:
    for path in store.glob("index.db*"):
        path.unlink()


@pytest.mark.parametrize("index", ["absent", "stale", "present"])
def test_reading_commands_answer_on_a_full_disk(disk: Path, index: str) -> None:
    runs = five()
    in_another_process(lambda: kept(disk, *(runs if index == "present" else runs[:4])))
    if index == "absent":
        forget_index(disk)
    if index != "present":
        in_another_process(lambda: kept(disk / "aside", runs[4]))
        shutil.copy(journal_of(disk / "aside", runs[4]["id"]), disk / "journal")
    fill(disk)
    for words in READING:
        code, out, err = do(disk, *words)
        assert code in (0, 1 if words[0] == "check" else 0), (words, err)
        assert [] == [line for line in err if "Traceback" in line]
        in_memory = [line for line in err if "index in memory" in line]
        assert len(in_memory) == (index != "present"), (words, err)
        if words[0] == "ls":
            assert 5 == len(json.loads(out))
    empty(disk)
    code, out, err = do(disk, "ls", "--json")
    assert (0, 5, []) == (code, len(json.loads(out)), err)


@pytest.mark.parametrize("index", ["absent", "present"])
@pytest.mark.parametrize("keep", [False, True], ids=["removed", "summary kept"])
def test_gc_frees_a_full_disk(disk: Path, index: str, keep: bool) -> None:
    for number in range(RUNS):
        one_file(
            disk,
            f"old{number}",
            [*lines_of(f"old{number}")[:2], *[[1.0, 1, 2.0, 3]] * 2000, *lines_of(f"old{number}")[-1:]],
        )
    one_file(disk, "both", [*lines_of("with"), *young("young")])
    if index == "present":
        in_another_process(lambda: opened(disk))
    # With nothing that could be given up, a summary needs space before its windows free any.
    fill(disk, room=8192 if keep and index == "absent" else 0)
    code, _, err = do(disk, "gc", "--older-than", "1d", *(["--keep-summary"] if keep else []))
    assert code == 0, err
    assert [] == [line for line in err if "Traceback" in line]
    assert os.statvfs(disk).f_bavail > 0
    code, out, err = do(disk, "ls", "--json")
    assert (0, RUNS + 2 if keep else 1, []) == (code, len(json.loads(out)), err)
    assert "young" == json.loads(do(disk, "show", "young", "--json")[1])["id"]


def test_a_summary_on_a_full_disk_without_anything_to_give_up_is_refused_in_one_line(disk: Path) -> None:
    one_file(disk, "old", lines_of("old"))
    fill(disk)
    code, _, err = do(disk, "gc", "--older-than", "1d", "--keep-summary")
    assert code == 125
    assert "No space left on device" in err[-1]
    assert (0, True) == (do(disk, "show", "old")[0], b"columns" in journal_of(disk, "old").read_bytes())


@pytest.mark.parametrize("index", ["absent", "present"])
def test_rm_frees_a_full_disk(disk: Path, index: str) -> None:
    in_another_process(lambda: kept(disk, *five()))
    if index == "absent":
        forget_index(disk)
    fill(disk)
    code, _, err = do(disk, "rm", "--yes", "aaa1", "aab2")
    assert (0, "jobmeter: removed 2 runs") == (code, err[-1])
    assert 3 == len(json.loads(do(disk, "ls", "--json")[1]))
    empty(disk)
    code, out, err = do(disk, "ls", "--json")
    assert (0, ["ddd5", "ccc4", "bbb3"], []) == (code, [row["id"] for row in json.loads(out)], err)


def test_a_file_system_that_cannot_be_written_is_read(disk: Path) -> None:
    in_another_process(lambda: kept(disk, *five()[:4]))
    shutil.copy(journal_of(disk, "aaa1"), disk / "journal" / "new.jsonl")
    text = (disk / "journal" / "new.jsonl").read_text().replace("aaa1", "new1")
    (disk / "journal" / "new.jsonl").write_text(text)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for words in READING:
        code, out, err = do(disk, *words)
        assert code in (0, 1 if words[0] == "check" else 0), (words, err)
        if words[0] == "ls":
            assert 5 == len(json.loads(out))
    for words in (("gc", "--older-than", "1d"), ("rm", "--yes", "aaa1"), ("label", "aaa1", "a=b")):
        code, _, err = do(disk, *words)
        messages = [line for line in err if not line.startswith("  ")]  # `rm` lists what it would remove
        assert (125, 1) == (code, len(messages)), err
    assert 5 == len(json.loads(do(disk, "ls", "--json")[1]))


def as_another_user(store: Path) -> tuple[list[str], list[str]]:
    """The ids that an ordinary user finds, and the warnings."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            warnings: list[str] = []
            run_ids = ids(opened(store, warnings))
            os.write(there, json.dumps([run_ids, warnings]).encode())
        finally:
            os._exit(0)
    os.close(there)
    with open(here, "rb") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    run_ids, warnings = json.loads(text)
    return run_ids, warnings


def open_to_others(path: Path) -> None:
    """As a store was before new ones were private."""
    (path / "journal").chmod(0o755)
    for file in (path / "journal").iterdir():
        file.chmod(0o644)
    for parent in (path, *path.parents):
        if parent.stat().st_uid == os.getuid() and str(parent) not in ("/", "/tmp"):
            parent.chmod(0o755)


@pytest.mark.parametrize("index", ["absent", "stale", "present", "unreadable"])
def test_someone_elses_store_is_read(tmp_path: Path, index: str) -> None:
    need_root("to become another user")
    kept(tmp_path, *five()[:4])
    if index == "present":
        kept(tmp_path, five()[4])
    else:
        kept(tmp_path / "aside", five()[4])
        shutil.copy(journal_of(tmp_path / "aside", "ddd5"), tmp_path / "journal")
    if index == "absent":
        forget_index(tmp_path)
    else:
        (tmp_path / "index.db").chmod(0o600 if index == "unreadable" else 0o644)
    open_to_others(tmp_path)
    assert (["ddd5", "ccc4", "bbb3", "aab2", "aaa1"], []) == as_another_user(tmp_path)


def test_another_users_index_in_a_directory_of_all_is_left_alone(tmp_path: Path) -> None:
    need_root("to become another user")
    kept(tmp_path, *five())
    open_to_others(tmp_path)
    tmp_path.chmod(0o777)
    (tmp_path / "index.db").chmod(0o600)
    content = (tmp_path / "index.db").read_bytes()
    run_ids, warnings = as_another_user(tmp_path)
    assert (5, [], content) == (len(run_ids), warnings, (tmp_path / "index.db").read_bytes())


@pytest.mark.parametrize("what", ["directory", "fifo", "link to another database", "link to nothing", "no database"])
def test_whatever_is_in_place_of_the_index_all_runs_are_listed(tmp_path: Path, what: str) -> None:
    kept(tmp_path / "store", *five())
    forget_index(tmp_path / "store")
    index = tmp_path / "store" / "index.db"
    if what == "directory":
        index.mkdir()
    elif what == "fifo":
        os.mkfifo(index)
    elif what == "no database":
        index.write_bytes(os.urandom(5000))
    else:
        index.symlink_to(tmp_path / "other.db")
    if what == "link to another database":
        with sqlite3.connect(tmp_path / "other.db") as other:
            other.execute("create table mine (value)")
    others = {path: path.read_bytes() for path in tmp_path.glob("other.db*")}
    warnings: list[str] = []
    store = opened(tmp_path / "store", warnings)
    assert 5 == len(ids(store))
    expected = f"{index}: it is not a regular file; this command makes an index in memory"
    assert ([] if what == "no database" else [expected]) == warnings
    store.relabel("aaa1", {"team": "b"})
    store.remove("bbb3")
    store.prune(Selection(names=["export"]))
    assert {"aaa1", "aab2", "ccc4"} == set(ids(opened(tmp_path / "store", [])))
    assert others == {path: path.read_bytes() for path in tmp_path.glob("other.db*")}


def test_runs_of_a_file_that_is_still_written_are_removed_without_it(tmp_path: Path) -> None:
    from tests.store.index.test_update import HERE, myself

    run = record("one", "job")
    shared = {"schema": "jobmeter.journal/1", "shared": {"writer": myself(), "host": HERE}}
    path = one_file(tmp_path, "flow", [shared, *lines_of("one")[:1], {"record": run}])
    opened(tmp_path).remove("one")
    assert (True, []) == (path.exists(), ids(opened(tmp_path)))
