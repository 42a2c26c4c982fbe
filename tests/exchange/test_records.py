"""Our own records, as JSON Lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobmeter.exchange.records import line_of
from jobmeter.journal.reader import JournalWindow
from tests.exchange.reading import FIXTURES, read, runs, unusable, written

RUN = runs(read(FIXTURES / "duct_load_info.json"))[0]


def line(**changes: Any) -> str:
    entry = line_of(RUN.record, RUN.described, RUN.windows)
    return json.dumps({key: value for key, value in {**entry, **changes}.items() if value != "absent"}) + "\n"


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    assert [RUN] == read(written(tmp_path, line()))


def test_without_windows_the_record_is_the_same(tmp_path: Path) -> None:
    content = json.dumps(line_of(RUN.record, RUN.described, None)) + "\n"
    assert [RUN._replace(windows=[])] == read(written(tmp_path, content))


def test_bytes_that_are_no_utf8_survive(tmp_path: Path) -> None:
    record: Any = {**RUN.record, "command": ["cat", b"\xff.txt".decode(errors="surrogateescape")]}
    content = json.dumps(line_of(record, {}, [JournalWindow(1.0, 1, {})])) + "\n"
    assert [record] == [run.record for run in runs(read(written(tmp_path, content)))]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": "../../etc/passwd"}, "has no id that could be one: '../../etc/passwd'"),
        ({"id": "absent"}, "has no id that could be one: None"),
        ({"usage": []}, f"run {RUN.record['id']}: usage is missing or of the wrong kind"),
        ({"outcome": {"status": "happy"}}, f"run {RUN.record['id']}: its status 'happy' is not one"),
        ({"started": "then"}, "started 'then' is not a date and time"),
        ({"wall_seconds": -1}, f"run {RUN.record['id']}: wall_seconds -1 is not a number from 0 up"),
        ({"usage": {"cpu_seconds": {}}}, f"run {RUN.record['id']}: cpu_seconds None is not a number"),
        ({"windows": [[1]]}, "has a window that is not [seconds, samples, cells]"),
        ({"labels": {"x": float("nan")}}, "has NaN, which is no number"),
    ],
)
def test_a_record_that_cannot_be_used_says_why(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    items = read(written(tmp_path, line(id="whole1") + line(**changes) + line(id="whole2")))
    assert ["whole1", "whole2"] == [run.record["id"] for run in runs(items)]
    assert [f"line 2: {why}"] == unusable(items)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (line()[:400], "is not whole JSON: it breaks off"),
        ("null\n", "is no run record"),
        (line(schema="jobmeter.run/2"), "has schema 'jobmeter.run/2', this version reads jobmeter.run/1"),
        ("[" * 100_000 + "\n", "is not whole JSON"),
    ],
)
def test_a_line_that_is_no_record_costs_only_itself(tmp_path: Path, last: str, why: str) -> None:
    items = read(written(tmp_path, line() + last))
    assert (1, [f"line 2: {why}"]) == (len(runs(items)), unusable(items))
