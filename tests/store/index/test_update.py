from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobmeter.journal.writer import SCHEMA, JournalWriter, shared_journal
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.store import Selection
from jobmeter.store.index import update
from jobmeter.store.index.database import open_index
from tests.runs import DESCRIBED, record, windows
from tests.store.kept import append, five, header, ids, journal_of, kept, one_file, opened

HERE = {"name": os.uname().nodename}


def started(folder: Path, run_id: str, writer: dict[str, Any], host: dict[str, Any] = HERE) -> JournalWriter:
    """A run whose record has not come."""
    journal = JournalWriter(str(folder), run_id)
    journal.begin(header(run_id, writer=writer, host=host))
    for window in windows(4):
        journal.window(window.seconds, window.samples, window.cells, [])
    return journal


def myself() -> dict[str, Any]:
    return {"pid": os.getpid(), "start": read_stat(THIS_MACHINE, os.getpid()).start}


def nobody() -> int:
    """The pid of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def status(folder: Path, run_id: str) -> str:
    return str(opened(folder).record(run_id)["outcome"]["status"])


def test_a_new_run_is_found_whenever_it_comes(tmp_path: Path) -> None:
    for count, run in enumerate(five(), start=1):
        kept(tmp_path, run)
        assert count == len(ids(opened(tmp_path)))


def test_a_run_that_came_long_after_the_last_look_is_found(tmp_path: Path) -> None:
    kept(tmp_path, five()[0])
    old = time.time() - 100
    os.utime(tmp_path / "journal", (old, old))
    assert ["aaa1"] == ids(opened(tmp_path))
    assert ["aab2", "aaa1"] == ids(kept(tmp_path, five()[1]))


def test_a_journal_that_was_deleted_takes_its_run_along(tmp_path: Path) -> None:
    kept(tmp_path, *five())
    journal_of(tmp_path, "ccc4").unlink()
    store = opened(tmp_path)
    assert ["ddd5", "bbb3", "aab2", "aaa1"] == ids(store)
    with sqlite3.connect(tmp_path / "index.db") as index:
        assert (12,) == index.execute("select count(*) from job_resource_samples").fetchone()


def test_a_run_whose_writer_lives_is_running_and_shows_what_it_used_so_far(tmp_path: Path) -> None:
    started(tmp_path, "aaa1", myself()).close()
    run = opened(tmp_path).record("aaa1")
    assert "running" == run["outcome"]["status"]
    assert {"value": 100 << 20, "from": "proc_rss_total", "quality": "at least"} == run["usage"]["memory_peak_bytes"]
    assert {"value": 4 << 20, "from": "proc_read_bytes", "quality": "at least"} == run["usage"]["read_bytes"]
    assert {"unit": "percent", "kind": "gauge", "peak": 95.0, "mean": 80.0} == run["measurements"]["proc_cpu_percent"]
    assert "ended" not in run


def test_a_running_run_is_looked_at_again_until_it_ends(tmp_path: Path) -> None:
    journal = started(tmp_path, "aaa1", myself())
    before = status(tmp_path, "aaa1")
    journal.window(5.0, 1, {"proc_rss_total": 200 << 20}, [])
    grown = opened(tmp_path).record("aaa1")["usage"]["memory_peak_bytes"]["value"]
    journal.record(record("aaa1"))
    journal.close()
    assert ("running", 200 << 20, "completed") == (before, grown, status(tmp_path, "aaa1"))


def test_a_record_that_says_running_is_of_a_run_that_was_detached(tmp_path: Path) -> None:
    store = kept(tmp_path, record("aaa1", status="running"))
    assert ["detached"] == [row["status"] for row in store.runs()]
    assert "detached" == store.record("aaa1")["outcome"]["status"]
    store.remove("aaa1")
    assert [] == ids(opened(tmp_path))


@pytest.mark.parametrize("writer", ["gone", "another process with its pid"])
def test_a_run_whose_writer_is_gone_is_lost_and_keeps_its_windows(tmp_path: Path, writer: str) -> None:
    who = {"pid": nobody()} if writer == "gone" else {"pid": os.getpid(), "start": 1}
    started(tmp_path, "aaa1", who).close()
    store = opened(tmp_path)
    assert ("lost", windows(4)) == (store.record("aaa1")["outcome"]["status"], store.journal("aaa1").windows)
    assert 4.0 == store.record("aaa1")["wall_seconds"]


def test_a_running_run_becomes_lost_when_its_writer_dies(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started(tmp_path, "aaa1", {"pid": process.pid}).close()
    before = status(tmp_path, "aaa1")
    process.communicate(b"\n")
    assert ("running", "lost", "lost") == (before, status(tmp_path, "aaa1"), status(tmp_path, "aaa1"))


@pytest.mark.parametrize(("age", "expected"), [(0, "running"), (7200, "lost")])
def test_a_run_on_another_machine_is_lost_when_it_was_silent_for_long(tmp_path: Path, age: int, expected: str) -> None:
    journal = started(tmp_path, "aaa1", {"pid": 1}, {"name": "elsewhere"})
    then = time.time() - age
    os.utime(journal.path, (then, then))
    before = status(tmp_path, "aaa1")
    journal.record(record("aaa1"))
    journal.close()
    assert (expected, "completed") == (before, status(tmp_path, "aaa1"))


def test_an_empty_journal_is_a_run_that_begins(tmp_path: Path) -> None:
    kept(tmp_path, five()[0])
    journal = JournalWriter(str(tmp_path), "bbb3")
    before = ids(opened(tmp_path))
    journal.begin(header("bbb3"))
    journal.record(record("bbb3"))
    journal.close()
    assert (["aaa1"], {"aaa1", "bbb3"}) == (before, set(ids(opened(tmp_path))))


def test_a_torn_line_of_a_lost_run_is_reported_with_its_number_and_the_rest_is_kept(tmp_path: Path) -> None:
    journal = started(tmp_path, "aaa1", {"pid": nobody()})
    journal.close()
    append(Path(journal.path), b"[5.0,1,", end=b"")
    warnings: list[str] = []
    assert "lost" == opened(tmp_path, warnings).record("aaa1")["outcome"]["status"]
    assert [
        f"{journal.path}: line 7 cannot be read and was skipped (incomplete: its writer was stopped here)"
    ] == warnings


def test_a_line_that_is_just_being_written_is_not_reported(tmp_path: Path) -> None:
    journal = started(tmp_path, "aaa1", myself())
    append(Path(journal.path), b"[5.0,1,", end=b"")
    before = status(tmp_path, "aaa1")
    append(Path(journal.path), b"[95.0,80.0],1,1,1]")
    journal.record(record("aaa1"))
    journal.close()
    assert ("running", "completed") == (before, status(tmp_path, "aaa1"))
    assert 5 == len(opened(tmp_path).journal("aaa1").windows)


@pytest.mark.parametrize("line", [b"\xff\x00garbage", b"[1.5,1,", b'{"columns":5}', b'{"record":{"id":"aaa1","usa'])
def test_a_corrupt_line_is_reported_with_its_number_and_the_rest_is_kept(tmp_path: Path, line: bytes) -> None:
    kept(tmp_path, *five())
    path = journal_of(tmp_path, "aaa1")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], line, *lines[3:]]))
    (tmp_path / "index.db").unlink()
    warnings: list[str] = []
    store = opened(tmp_path, warnings)
    assert 5 == len(ids(store))
    assert five()[0] == store.record("aaa1")
    assert f"{path}: line 4 cannot be read and was skipped" == warnings[0]


def test_of_very_many_corrupt_lines_only_some_are_reported_one_by_one(tmp_path: Path) -> None:
    kept(tmp_path, five()[0])
    append(journal_of(tmp_path, "aaa1"), *[b"noise"] * 100)
    (tmp_path / "index.db").unlink()
    warnings: list[str] = []
    opened(tmp_path, warnings)
    assert (6, f"{journal_of(tmp_path, 'aaa1')}: 95 more lines cannot be read") == (len(warnings), warnings[-1])


@pytest.mark.parametrize(
    "content", [b"noise\n", b"\x00" * 5000, b'{"schema":"jobmeter.journal/9","id":"x"}\n', b"[]\n", b"\n\n"]
)
def test_a_file_that_is_no_journal_is_reported_once_and_never_hides_the_others(tmp_path: Path, content: bytes) -> None:
    kept(tmp_path, *five())
    (tmp_path / "journal" / "bad.jsonl").write_bytes(content)
    then = time.time() - 7200
    os.utime(tmp_path / "journal" / "bad.jsonl", (then, then))
    warnings: list[str] = []
    assert 5 == len(ids(opened(tmp_path, warnings)))
    assert (1, True) == (len(warnings), "bad.jsonl" in warnings[0])
    assert 5 == len(ids(opened(tmp_path)))


def test_a_journal_that_may_not_be_read_is_reported_and_never_hides_the_others(tmp_path: Path) -> None:
    kept(tmp_path, five()[0])
    (tmp_path / "journal" / "folder.jsonl").mkdir()
    warnings: list[str] = []
    assert ["aaa1"] == ids(opened(tmp_path, warnings))
    assert [f"{tmp_path}/journal/folder.jsonl: Is a directory"] == warnings


def test_a_file_of_many_runs_that_overlap_gives_each_its_own_lines(tmp_path: Path) -> None:
    file = shared_journal(str(tmp_path), "flow", {"measurements": DESCRIBED, "host": HERE, "writer": myself()})
    first, second = (JournalWriter("", run_id, shared=file) for run_id in ("aaa1", "bbb2"))
    first.begin({"id": "aaa1", "name": "one", "started": "2026-01-31T12:00:00.000Z"})
    first.window(1.0, 1, {"proc_rss_total": 1}, [])
    second.begin({"id": "bbb2", "name": "two", "started": "2026-01-31T13:00:00.000Z"})
    second.window(1.0, 1, {"proc_rss_total": 10, "proc_processes": 2}, [])
    first.window(2.0, 1, {"proc_rss_total": 2}, [])
    first.record(record("aaa1"))
    halfway = opened(tmp_path)
    assert ["running", "completed"] == [row["status"] for row in halfway.runs()]
    assert [1, 2] == [window.cells["proc_rss_total"] for window in halfway.journal("aaa1").windows]
    second.window(2.0, 1, {"proc_rss_total": 20, "proc_processes": 2}, [])
    second.record(record("bbb2"))
    file.close()
    store = opened(tmp_path)
    assert ["completed", "completed"] == [row["status"] for row in store.runs()]
    assert [10, 20] == [window.cells["proc_rss_total"] for window in store.journal("bbb2").windows]
    assert DESCRIBED == store.journal("bbb2").header["measurements"]


def test_runs_that_are_added_to_a_file_of_a_living_writer_are_found(tmp_path: Path) -> None:
    file = shared_journal(str(tmp_path), "flow", {"host": HERE, "writer": myself()})
    for count, run in enumerate(five(), start=1):
        writer = JournalWriter("", run["id"], shared=file)
        writer.begin({"id": run["id"], "name": run["name"], "started": run["started"]})
        writer.record(run)
        assert count == len(ids(opened(tmp_path)))
    file.close()


def test_a_run_without_a_readable_header_in_a_file_of_many_is_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    lines = [{"schema": SCHEMA, "shared": {}}]
    for run in five()[:3]:
        lines += [{"schema": SCHEMA, **header(run["id"])}, {"record": run}]
    path = one_file(tmp_path, "many", lines)
    path.write_bytes(path.read_bytes().replace(b'"id": "aab2", "name"', b'"id": "aab2, "name"', 1))
    warnings: list[str] = []
    assert ["bbb3", "aaa1"] == ids(opened(tmp_path, warnings))
    assert [f"{path}: line 4 is not the header of a journal"] == warnings[:1]


def test_one_who_cannot_write_to_the_index_still_answers_with_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobmeter.store.index.database._BUSY_SECONDS", 0.1)
    kept(tmp_path, five()[0])
    other = open_index(str(tmp_path / "index.db"))
    other.exec_driver_sql("BEGIN IMMEDIATE")
    journal_of(tmp_path, "bbb3").write_bytes(journal_of(tmp_path, "aaa1").read_bytes().replace(b"aaa1", b"bbb3"))
    warnings: list[str] = []
    assert {"aaa1", "bbb3"} == set(ids(opened(tmp_path, warnings)))
    reason = "another program holds its lock; this command makes an index in memory"
    assert [f"{tmp_path}/index.db: {reason}"] == warnings
    other.exec_driver_sql("ROLLBACK")
    assert 2 == len(ids(opened(tmp_path)))


def test_a_store_that_may_not_be_written_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path, *five())
    (tmp_path / "index.db").unlink()
    before = set(os.listdir(tmp_path))
    access = os.access
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK and access(path, mode))
    assert 5 == len(ids(opened(tmp_path)))
    assert before == set(os.listdir(tmp_path))


def test_a_store_that_is_not_there_has_no_runs_and_is_not_made(tmp_path: Path) -> None:
    assert [] == ids(opened(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_record_whose_parts_come_in_another_order_is_indexed_whole(tmp_path: Path) -> None:
    run = record("abc", name="sorted", wall_seconds=7.0, cpu_seconds=2.0)
    run["measurements"] = {"perf_cpu_seconds": {"unit": "seconds", "kind": "counter", "total": 2.0}}
    store = kept(tmp_path, dict(sorted(run.items())))
    (row,) = store.runs(Selection())
    assert (run["wall_seconds"], run["usage"]["cpu_seconds"]["value"]) == (row["wall_seconds"], row["cpu_seconds"])


def test_files_that_are_read_in_processes_of_their_own_give_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        lines: list[Any] = [{"schema": SCHEMA, "shared": {"measurements": DESCRIBED}}]
        for at in range(700):
            run = record(f"run{number}{at:03}", name=f"job{at % 5}", cpu_seconds=float(at))
            lines += [{"schema": SCHEMA, "id": run["id"], "name": run["name"]}, {"record": run}]
        path = one_file(tmp_path, f"many{number}", lines)
        append(path, b'{"labels":{"late":"yes"},"run":"run%d007"}' % number, b"noise")
    answers = []
    for worth_it in (1 << 60, 0):
        monkeypatch.setattr(update, "WORTH_IT", worth_it)
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        warnings: list[str] = []
        rows = list(opened(tmp_path, warnings).runs(Selection(sort="id")))
        answers.append((rows, sorted(warnings)))
    (alone, warnings_alone), (together, warnings_together) = answers
    assert 2100 == len(alone)
    assert 3 == len(warnings_alone)
    assert {"late": "yes"} == next(row for row in alone if row["id"] == "run1007")["labels"]
    assert (alone, warnings_alone) == (together, warnings_together)
