from __future__ import annotations

import contextlib
import json
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.byte_text import to_bytes
from jobmeter.errors import StoreError
from jobmeter.journal.reader import RunLocation, read_journal
from jobmeter.journal.writer import SCHEMA, JournalWriter, journal_path, shared_journal
from jobmeter.model import Across, Kind, Measurement, Quality
from tests.runs import record
from tests.small_disk import small_disk

pytestmark = pytest.mark.no_records

RSS = Measurement("proc_rss", "bytes", Kind.GAUGE, Across.SUM, Quality.SAMPLED, "Resident memory.")


def partial(**fields: Any) -> Any:
    """Some fields of a record: enough for a writer, which looks at none of them."""
    return fields


def lines(path: str) -> list[Any]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_a_journal_is_a_header_then_windows_in_the_order_of_their_columns_then_the_record(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path), "abc")
    writer.header({"id": "abc"}, {"proc_rss": RSS})
    writer.window(10.004, 3, {"proc_rss": [20, 15], "cpu": 0.5}, [])
    writer.window(20.0, 1, {"proc_rss": 18, "cpu": 0.25}, [])
    writer.record(partial(id="abc", wall_seconds=21.0))
    writer.close()
    assert [
        {"schema": SCHEMA, "id": "abc", "measurements": {"proc_rss": RSS.described()}},
        {"columns": ["proc_rss", "cpu"]},
        [10.004, 3, [20, 15], 0.5],
        [20.0, 1, 18, 0.25],
        {"record": {"id": "abc", "wall_seconds": 21.0}},
    ] == lines(writer.path)
    assert None is writer.failed


def test_columns_are_declared_again_when_their_set_changes(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path), "abc")
    for cells in ({"a": 1}, {"a": 2}, {"a": 3, "b": 4}, {"b": 5}, {"b": 6}):
        writer.window(1.0, 1, cells, [])
    writer.close()
    assert [["a"], ["a", "b"], ["b"]] == [line["columns"] for line in lines(writer.path) if isinstance(line, dict)]


def test_processes_stand_after_the_window_they_lived_in(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path), "abc")
    writer.window(1.0, 1, {"a": 1}, [{"pid": 7}])
    writer.window(2.0, 1, {"a": 1}, [])
    writer.close()
    assert [{"columns": ["a"]}, [1.0, 1, 1], {"processes": [{"pid": 7}]}, [2.0, 1, 1]] == lines(writer.path)


def test_every_line_is_on_disk_as_soon_as_it_is_written(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path), "abc")
    writer.header({}, {})
    header = lines(writer.path)
    writer.window(1.0, 1, {"a": 1}, [])
    assert (1, 3) == (len(header), len(lines(writer.path)))
    writer.close()


def test_a_journal_is_named_after_its_run_and_its_store_is_made(tmp_path: Path) -> None:
    store = str(tmp_path / "not" / "yet")
    writer = JournalWriter(store, "abc")
    writer.close()
    assert (f"{store}/journal/abc.jsonl", True) == (journal_path(store, "abc"), os.path.exists(writer.path))
    assert 0 == stat.S_IMODE(os.stat(writer.path).st_mode) & 0o111


def test_a_journal_that_is_there_is_never_written_to_again(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path), "abc")
    writer.header({"id": "first"}, {})
    writer.close()
    with pytest.raises(StoreError, match=r"abc\.jsonl: File exists"):
        JournalWriter(str(tmp_path), "abc")
    assert "first" == lines(writer.path)[0]["id"]


def test_a_store_that_cannot_be_made_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=f"{tmp_path}/file.*: (Not a directory|File exists)"):
        JournalWriter(str(tmp_path / "file"), "abc")


def test_a_discarded_journal_leaves_nothing(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path), "abc")
    writer.header({}, {})
    writer.discard()
    assert [] == os.listdir(tmp_path / "journal")


def test_an_argument_that_is_no_utf_8_survives(tmp_path: Path) -> None:
    argument = os.fsdecode(b"caf\xe9\n.txt")
    writer = JournalWriter(str(tmp_path), "abc")
    writer.header({"id": "abc", "name": "cat", "command": ["cat", argument]}, {})
    whole = record("abc")
    whole["command"] = ["cat", argument]
    writer.record(whole)
    writer.close()
    assert 2 == Path(writer.path).read_bytes().count(b"\n")
    journal = read_journal(writer.path)
    assert journal.record is not None
    assert [b"caf\xe9\n.txt"] * 2 == [to_bytes(each["command"][1]) for each in (journal.header, journal.record)]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one page."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, "4k"):
        yield disk


def fill(path: Path) -> None:
    """Write to this file until its disk is full."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def write_much(store: Path) -> JournalWriter:
    writer = JournalWriter(str(store), "abc")
    writer.header({"id": "abc"}, {"proc_rss": RSS})
    for number in range(1000):
        writer.window(float(number), 1, {"proc_rss": 10**9 + number}, [])
    writer.record(partial(id="abc"))
    writer.close()
    return writer


def test_a_full_disk_is_reported_once_and_raises_nothing(full_disk: Path) -> None:
    writer = write_much(full_disk)
    journal = read_journal(writer.path)
    assert f"{writer.path}: No space left on device" == writer.failed
    # What fitted is kept, in whole lines.
    assert Path(writer.path).read_bytes().endswith(b"\n")
    assert [10**9 + n for n in range(len(journal.windows))] == [window.cells["proc_rss"] for window in journal.windows]
    assert (True, None, []) == (len(journal.windows) > 100, journal.record, journal.problems)


def test_a_journal_goes_on_when_there_is_room_again_and_the_gap_is_recorded(full_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=16k", str(full_disk)], check=True)
    writer = JournalWriter(str(full_disk), "abc")
    writer.header({"id": "abc"}, {"proc_rss": RSS})
    writer.window(1.0, 1, {"proc_rss": 1}, [])
    filler = full_disk / "filler"
    fill(filler)
    number = 2
    while writer.failed is None:  # the rest of the page
        writer.window(float(number), 1, {"proc_rss": number}, [])
        number += 1
    writer.window(float(number), 1, {"proc_rss": number}, [])
    filler.unlink()
    writer.window(float(number + 1), 1, {"proc_rss": number + 1}, [])
    writer.record(record("abc"))
    writer.close()
    journal = read_journal(writer.path)
    assert [*range(1, number - 1), number + 1] == [window.cells["proc_rss"] for window in journal.windows]
    assert journal.record == record("abc")
    assert {"gap": {"windows": 2, "why": writer.failed}} in lines(writer.path)
    (problem,) = journal.problems
    assert "2 windows are missing here" in problem


def test_headers_and_records_that_found_no_room_are_written_later(full_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=16k", str(full_disk)], check=True)
    shared = shared_journal(str(full_disk), "many", {"user": "me"})
    fill(full_disk / "filler")
    writers = [JournalWriter(str(full_disk), name, shared) for name in ("a", "b")]
    for writer in writers:
        writer.header({"id": writer._run_id, "labels": {"long": "x" * 3000}}, {"proc_rss": RSS})
    for _ in range(2):
        for writer in writers:
            writer.window(1.0, 1, {"proc_rss": 5}, [])
    writers[0].record(record("a"))
    (full_disk / "filler").unlink()
    for writer in writers:
        writer.window(2.0, 1, {"proc_rss": 7}, [])
    writers[1].record(record("b"))
    shared.close()
    for name in ("a", "b"):
        journal = read_journal(shared.path, RunLocation(name))
        assert journal.record == record(name)
        assert journal.header["labels"] == {"long": "x" * 3000}
        (problem,) = journal.problems
        assert "2 windows are missing here" in problem


def test_a_file_that_may_not_grow_is_reported_and_raises_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        writer = write_much(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert f"{writer.path}: File too large" == writer.failed
    assert Path(writer.path).read_bytes().endswith(b"\n")


def test_runs_of_many_threads_in_one_journal_keep_their_own_windows(tmp_path: Path) -> None:
    described = {"proc_rss": RSS.described()}
    file = shared_journal(str(tmp_path), "many", {"measurements": described, "user": "ann"})

    def write(number: int) -> None:
        writer = JournalWriter(str(tmp_path), f"run{number}", file)
        writer.header({"id": f"run{number}", "user": "ann" if number else "bob"}, {"proc_rss": RSS})
        for window in range(50):
            writer.window(window, 1, {"proc_rss": 1000 * number + window}, [])
        writer.record(record(f"run{number}"))
        writer.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file.close()
    run_ids = [f"run{number}" for number in range(8)]
    journals = {run_id: read_journal(file.path, RunLocation(run_id)) for run_id in run_ids}
    assert run_ids == [journal.header["id"] for journal in journals.values()]
    for number in range(8):
        journal = journals[f"run{number}"]
        assert [1000 * number + window for window in range(50)] == [w.cells["proc_rss"] for w in journal.windows]
        assert (record(f"run{number}"), []) == (journal.record, journal.problems)
        assert (described, "ann" if number else "bob") == (journal.header["measurements"], journal.header["user"])


@pytest.mark.parametrize(
    "value",
    ["plain", 'quote " and \\', "\x00\x1b[31m\x7f", "caf\udce9", "日本 😀", 1 << 70, -(1 << 63), 1e-7, 12345.678, None,
     True, {"a": [1, {"b": ()}]}, []],
    ids=ascii,
)  # fmt: skip
def test_the_many_lines_of_one_program_read_like_the_first(value: Any) -> None:
    code = (
        "import sys; from jobmeter.journal.writer import encode\n"
        f"value = {value!a}\n"
        "lines = [encode({'record': value, 'n': [value]}) for _ in range(60)]\n"
        "assert 'orjson' in sys.modules, 'the last lines were written as the first'\n"
        "sys.stdout.buffer.write(lines[0] + lines[-1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    first, last = done.stdout.splitlines()
    assert json.loads(first) == json.loads(last)
    assert last.isascii()
    assert not any(byte < 32 or byte == 127 for byte in last)
