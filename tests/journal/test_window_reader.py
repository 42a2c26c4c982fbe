"""The quick reader of windows gives what the careful one gives, or says that it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobmeter.journal.reader import RunLocation, read_journal
from jobmeter.journal.window_reader import NotCanonical, WindowReader
from jobmeter.journal.writer import SCHEMA, JournalWriter, shared_journal
from tests.runs import DESCRIBED, record, windows

HEADER = {"schema": SCHEMA, "id": "aaaa", "name": "fit", "measurements": DESCRIBED}
COLUMNS = {"columns": ["proc_rss_total", "proc_read_bytes"]}


def journal(folder: Path, *lines: Any) -> str:
    path = folder / "aaaa.jsonl"
    texts = (line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() for line in lines)
    path.write_bytes(b"".join(text + b"\n" for text in texts))
    return str(path)


def read(path: str, location: RunLocation) -> list[tuple[float, int, dict[str, Any]]]:
    reader = WindowReader(path)
    parts = reader.windows(location)
    assert [columns for columns, _ in parts] == [columns for columns, _ in reader.columns(location)]
    reader.close()
    return [
        (window[0], window[1], {column.key: cell for column, cell in zip(columns, window[2:])})
        for columns, each in parts
        for window in each
    ]


def test_it_reads_what_the_careful_reader_reads(tmp_path: Path) -> None:
    file = shared_journal(str(tmp_path), "many", {"measurements": DESCRIBED})
    writers = [JournalWriter("", run_id, shared=file) for run_id in ("aaaa", "bbbb")]
    offsets = []
    for writer, run_id in zip(writers, ("aaaa", "bbbb")):
        offsets.append(Path(file.path).stat().st_size)
        writer.begin({"id": run_id, "name": "fit"})
    for number, window in enumerate(windows(6)):  # in turns: lines of both are mixed
        cells = window.cells if number < 4 else {"proc_processes": 2}
        for writer in writers:
            writer.window(window.seconds, window.samples, cells, [{"pid": 1, "cmd": "x"}])
    for writer, run_id in zip(writers, ("aaaa", "bbbb")):
        writer.record(record(run_id))
    file.close()
    for run_id, offset, line in zip(("bbbb", "aaaa"), reversed(offsets), (3, 2)):
        location = RunLocation(run_id, offset, line)
        careful = read_journal(file.path, location).windows
        assert [tuple(window) for window in careful] == read(file.path, location)
        assert 6 == len(careful)


def test_gauges_are_one_number_or_two(tmp_path: Path) -> None:
    path = journal(tmp_path, HEADER, COLUMNS, [1.0, 3, [9, 5], 0], [2.0, 3, 7, None])
    assert [
        (1.0, 3, {"proc_rss_total": [9, 5], "proc_read_bytes": 0}),
        (2.0, 3, {"proc_rss_total": 7, "proc_read_bytes": None}),
    ] == read(path, RunLocation("aaaa"))


@pytest.mark.no_records
@pytest.mark.parametrize(
    "line",
    [
        b"[1.0,3,7", b"[1.0,3,7,8,9]", b"[1.0,3,7]", b'["1",3,7,8]', b"[1.0,3,true,8]", b"[-1,3,7,8]", b"[1.0,3,-7,8]",
        b"[1.0,3.5,7,8]", b"[1.0,3,1e999,8]", b"[1.0,3,[1,2,3],8]", b"[1.0,3,7,[8,8]]", b'[1.0,3,"7",8]',
        b"[1.0,3,NaN,8]", b'[1.0,3,7,"\\ud800"]', b"no line", b'{"columns":7}', b'{"columns":["a",1]}',
    ],
)  # fmt: skip
def test_whatever_is_not_as_it_should_be_is_for_the_careful_reader(tmp_path: Path, line: bytes) -> None:
    path = journal(tmp_path, HEADER, COLUMNS, [1.0, 3, 7, 8], line, [2.0, 3, 7, 8])
    with pytest.raises(NotCanonical):
        WindowReader(path).windows(RunLocation("aaaa"))


@pytest.mark.no_records
def test_another_run_at_the_place_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(NotCanonical):
        WindowReader(journal(tmp_path, HEADER)).windows(RunLocation("bbbb"))


@pytest.mark.no_records
def test_a_torn_last_line_is_noticed(tmp_path: Path) -> None:
    path = journal(tmp_path, HEADER, COLUMNS, [1.0, 3, 7, 8])
    Path(path).write_bytes(Path(path).read_bytes() + b"[2.0,3,7,8]")
    with pytest.raises(NotCanonical):
        WindowReader(path).windows(RunLocation("aaaa"))
