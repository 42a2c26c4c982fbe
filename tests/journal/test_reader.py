from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobmeter.errors import StoreError
from jobmeter.journal.reader import JournalWindow, read_journal
from jobmeter.journal.writer import SCHEMA, JournalWriter
from jobmeter.model import Across, Kind, Measurement, Quality
from tests.runs import record as a_record

pytestmark = pytest.mark.no_records

HEADER = b'{"schema":"%s","id":"abc"}' % SCHEMA.encode()
A = b'{"columns":["a"]}'
RECORD = json.dumps({"record": a_record("abc")}).encode()


def written(folder: Path, *lines: bytes, end: bytes = b"\n") -> str:
    path = folder / "abc.jsonl"
    path.write_bytes(b"\n".join(lines) + end)
    return str(path)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    rss = Measurement("proc_rss", "bytes", Kind.GAUGE, Across.SUM, Quality.SAMPLED, "Resident memory.")
    writer = JournalWriter(str(tmp_path), "abc")
    writer.header({"id": "abc", "name": "x", "labels": {"k": "v"}}, {"proc_rss": rss})
    writer.window(10.0, 3, {"proc_rss": [20, 15], "state": {"S": 0.5, "R": 0.5}}, [{"pid": 7, "cmd": "x"}])
    writer.window(20.0, 1, {"proc_rss": 18}, [])
    writer.window(30.0, 2, {"cmd": "sh", "proc_rss": 19}, [{"pid": 8}, {"pid": 9}])
    record = a_record("abc")
    writer.record(record)
    writer.close()
    journal = read_journal(writer.path)
    expected = {
        "schema": SCHEMA,
        "id": "abc",
        "name": "x",
        "labels": {"k": "v"},
        "measurements": {
            "proc_rss": {
                "unit": "bytes",
                "kind": "gauge",
                "across": "sum",
                "quality": "sampled",
                "help": "Resident memory.",
                "gauge": "level",
            }
        },
    }
    assert expected == journal.header
    assert [
        JournalWindow(10.0, 3, {"proc_rss": [20, 15], "state": {"S": 0.5, "R": 0.5}}),
        JournalWindow(20.0, 1, {"proc_rss": 18}),
        JournalWindow(30.0, 2, {"cmd": "sh", "proc_rss": 19}),
    ] == journal.windows
    assert [(10.0, [{"pid": 7, "cmd": "x"}]), (30.0, [{"pid": 8}, {"pid": 9}])] == journal.processes
    assert (record, []) == (journal.record, journal.problems)


def test_a_run_whose_writer_died_keeps_every_window_and_has_no_record(tmp_path: Path) -> None:
    journal = read_journal(written(tmp_path, HEADER, A, b"[1.0,1,5]", b"[2.0,1,6]"))
    assert ([5, 6], None, []) == ([w.cells["a"] for w in journal.windows], journal.record, journal.problems)


def test_a_torn_last_line_is_skipped_and_reported_with_its_number(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, A, b"[1.0,1,5]", b"[2.0,1,6", end=b"")
    journal = read_journal(path)
    assert [JournalWindow(1.0, 1, {"a": 5})] == journal.windows
    (problem,) = journal.problems
    assert f"{path}: line 4 cannot be read and was skipped (incomplete: its writer was stopped here)" == problem


def test_a_torn_record_is_no_record(tmp_path: Path) -> None:
    journal = read_journal(written(tmp_path, HEADER, b'{"record":{"id":"abc","usa', end=b""))
    assert (None, 1) == (journal.record, len(journal.problems))


@pytest.mark.parametrize(
    "line",
    [b"[1.5,1,", b"[1.5,1,5,6]", b"[1.5,1]", b"[1.5\xff,1,5]"],
    ids=["half", "too long", "too short", "no UTF-8"],
)
def test_a_corrupt_window_in_the_middle_costs_only_itself_and_is_reported(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, HEADER, A, b"[1.0,1,5]", line, b"[2.0,1,6]", RECORD)
    journal = read_journal(path)
    assert [5, 6] == [window.cells["a"] for window in journal.windows]
    assert [f"{path}: line 4 cannot be read and was skipped"] == journal.problems
    assert a_record("abc") == journal.record


@pytest.mark.parametrize(
    "line", [b'{"columns":["b"', b'{"columns":5}', b"\0\0\0\0", b'"text"', b"17", b'{"unknown":1}', b"null"]
)
def test_windows_after_columns_that_cannot_be_read_are_not_given_to_others(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, HEADER, A, b"[1.0,1,5]", line, b"[2.0,1,6]", b'{"columns":["c"]}', b"[3.0,1,7]")
    journal = read_journal(path)
    assert [{"a": 5}, {"c": 7}] == [window.cells for window in journal.windows]
    assert [f"{path}: line {number} cannot be read and was skipped" for number in (4, 5)] == journal.problems


@pytest.mark.parametrize("line", [b'{"processes":[{"pid":', b'{"record":{"id'])
def test_a_corrupt_line_that_declares_no_columns_leaves_them_as_they_are(tmp_path: Path, line: bytes) -> None:
    journal = read_journal(written(tmp_path, HEADER, A, line, b"[2.0,1,6]"))
    assert ([{"a": 6}], 1) == ([window.cells for window in journal.windows], len(journal.problems))


def test_a_window_before_any_columns_is_reported_and_not_made_up(tmp_path: Path) -> None:
    journal = read_journal(written(tmp_path, HEADER, b"[1.0,1]"))
    assert ([], 1) == (journal.windows, len(journal.problems))


def test_a_journal_of_another_schema_is_refused_with_advice(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"schema":"jobmeter.journal/9"}')
    with pytest.raises(StoreError) as refused:
        read_journal(path)
    expected = f"{path}: line 1 is written as 'jobmeter.journal/9', this version reads {SCHEMA}. Upgrade jobmeter."
    assert expected == str(refused.value)


@pytest.mark.parametrize("line", [b"", b"[1.0,1,5]", b'{"id":"abc"}', b'{"schema":"jobmeter.jour', b"\0\0\0", b"\xff"])
def test_a_file_without_a_header_is_refused(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, line, b"[1.0,1,5]")
    with pytest.raises(StoreError, match="line 1 is not the header of a journal") as refused:
        read_journal(path)
    assert path in str(refused.value)


def test_a_journal_that_is_not_there_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"{tmp_path}/none: No such file or directory"):
        read_journal(str(tmp_path / "none"))
