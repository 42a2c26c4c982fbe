"""Our own records, as JSON Lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobmeter.exchange.records import line_of
from jobmeter.journal.reader import JournalWindow
from jobmeter.model import Status
from tests.exchange.reading import FIXTURES, read, runs, unusable, written

RUN = runs(read(FIXTURES / "duct_load_info.json"))[0]


INVALID, WINDOW = "makes no valid record", "has a window that is not valid"
NO_TIME = "not a date and time in UTC"
ID = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"


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
    expected = {**record, "command": ["cat", "�ff.txt"]}
    assert [expected] == [run.record for run in runs(read(written(tmp_path, content)))]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": "../../etc/passwd"}, f"{INVALID}: id is '../../etc/passwd', which is not of the form {ID}"),
        ({"id": "absent"}, f"{INVALID}: id is missing"),
        ({"usage": []}, f"{INVALID}: usage is an array, not an object"),
        ({"outcome": {"status": "happy"}}, f"{INVALID}: outcome.status is 'happy', none of {', '.join(Status)}"),
        ({"started": "then"}, f"{INVALID}: started is 'then', not a date and time in UTC"),
        ({"started": "2026-02-31T00:00:00Z"}, f"{INVALID}: started is '2026-02-31T00:00:00Z', {NO_TIME}"),
        ({"wall_seconds": -1}, f"{INVALID}: wall_seconds is '-1', not from 0 to 1e+11"),
        ({"usage": {"cpu_seconds": {}}}, f"{INVALID}: usage.cpu_seconds.from is missing"),
        ({"name": None}, f"{INVALID}: name is null, not a text"),
        ({"described": {"x": {}}}, f"{INVALID}: described.x.kind is missing"),
        ({"later": [[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]}, f"{INVALID}: later is nested too deeply"),
        ({"windows": [[1, 1, {"duct_rss_total": "much"}]]}, f"{WINDOW}: duct_rss_total is a text, not a number"),
        ({"windows": 5}, "has windows that are no array"),
        ({"windows": [[1]]}, "has a window that is not [seconds, samples, cells]"),
        ({"labels": {"x": float("nan")}}, "is not whole JSON"),
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
