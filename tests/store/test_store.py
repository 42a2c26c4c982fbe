from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from jobmeter.byte_text import to_text
from jobmeter.errors import UsageError
from jobmeter.journal.writer import SCHEMA
from jobmeter.moments import moment
from jobmeter.store.index.tables import SCHEMA_VERSION
from tests.runs import DESCRIBED, record, windows
from tests.store.kept import answers, five, header, ids, journal_of, kept, names, one_file, opened


def test_runs_come_newest_first_with_numbers_as_numbers_and_nothing_for_what_was_not_measured(tmp_path: Path) -> None:
    rows = list(kept(tmp_path, *five()).runs())
    assert ["ddd5", "ccc4", "bbb3", "aab2", "aaa1"] == [row["id"] for row in rows]
    assert {
        "id": "aaa1",
        "name": "train",
        "status": "completed",
        "exit_code": 0,
        "source": "jobmeter",
        "started": "2026-01-31T12:00:00.000Z",
        "wall_seconds": 10.0,
        "cpu_seconds": 9.5,
        "memory_peak_bytes": 5 << 30,
        "labels": {"team": "a"},
        "user": "me",
        "host": "here",
        "cwd": "/",
        "command": ["true"],
        "cpu_quality": "exact",
        "memory_quality": "exact",
    } == rows[-1]
    assert 0.0 == rows[2]["cpu_seconds"]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"names": ["train"]}, ["aab2", "aaa1"]),
        ({"names": ["test*", "exp[o]rt"]}, ["ddd5", "ccc4", "bbb3"]),
        ({"statuses": ["oom", "failed"]}, ["bbb3", "aab2"]),
        ({"labels": {"team": "a"}}, ["ccc4", "aaa1"]),
        ({"labels": {"team": "a", "x y": 'a"b'}}, ["ccc4"]),
        ({"since": 1769868000.0}, ["ddd5", "ccc4", "bbb3"]),
        ({"until": 1769868000.0}, ["aab2", "aaa1"]),
        ({"since": moment("400000d"), "until": moment("now")}, ["ddd5", "ccc4", "bbb3", "aab2", "aaa1"]),
        ({"until": moment("400000d")}, []),
        ({"limit": 2}, ["ddd5", "ccc4"]),
        ({"sort": "wall_seconds"}, ["ccc4", "aab2", "aaa1", "bbb3", "ddd5"]),
        ({"sort": "memory_peak_bytes", "descending": False, "limit": 3}, ["bbb3", "aaa1", "aab2"]),
        ({"sort": "memory_peak_bytes", "limit": 3}, ["aab2", "aaa1", "bbb3"]),
        ({"where": "memory_peak_bytes > 4GiB", "statuses": ["oom"]}, ["aab2"]),
    ],
)
def test_a_selection_gives_the_runs_that_fit_in_its_order(
    tmp_path: Path, chosen: dict[str, object], expected: list[str]
) -> None:
    assert expected == ids(kept(tmp_path, *five()), **chosen)


@pytest.mark.parametrize(("descending", "expected"), [(False, ["aaa1", "ccc4"]), (True, ["ccc4", "aaa1"])])
def test_runs_without_an_end_come_last_in_both_directions(
    tmp_path: Path, descending: bool, expected: list[str]
) -> None:
    first, *others, last = five()[:4]
    # As `run` writes it: what the index has comes before the measurements.
    first, last = {"ended": "2026-01-31T20:00:00.000Z", **first}, {"ended": "2026-01-31T21:00:00.000Z", **last}
    store = kept(tmp_path, first, *others, last)
    assert expected == ids(store, sort="ended", descending=descending)[:2]


@pytest.mark.parametrize("seconds", [-1e23, 1e15, float("nan")])
@pytest.mark.parametrize("end", ["since", "until"])
def test_a_selection_by_a_time_that_cannot_be_is_refused(tmp_path: Path, end: str, seconds: float) -> None:
    with pytest.raises(UsageError, match="seconds since 1970 is not within the years 1 to 9999"):
        ids(opened(tmp_path), **{end: seconds})


def test_a_run_is_named_by_id_unique_prefix_name_or_last(tmp_path: Path) -> None:
    store = kept(tmp_path, *five())
    assert ["aaa1", "aaa1", "aab2", "ddd5"] == [store.resolve(text) for text in ("aaa1", "aaa", "train", "last")]


def test_a_prefix_of_several_runs_lists_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        kept(tmp_path, *five()).resolve("aa")
    first, *candidates = str(refused.value).splitlines()
    assert "'aa' is the beginning of several ids; give more letters:" == first
    assert ["aab2", "aaa1"] == [line.split()[0] for line in candidates]


@pytest.mark.parametrize("text", ["zzz", "", "tra", "'; drop table job_metadata; --", "aaa%"])
def test_a_run_that_does_not_exist_is_reported(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="there is no run"):
        kept(tmp_path, *five()).resolve(text)


def test_the_last_run_of_an_empty_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no runs yet"):
        opened(tmp_path).resolve("last")


def test_the_whole_record_and_journal_are_as_they_were_written(tmp_path: Path) -> None:
    store = kept(tmp_path, *five())
    assert five()[0] == store.record("aaa1")
    assert (windows(3), []) == (store.journal("aaa1").windows, store.journal("aaa1").problems)


@pytest.mark.parametrize("how", ["deleted", "truncated", "halved", "noise", "noise inside", "empty", "another's"])
def test_a_damaged_index_is_made_anew_and_gives_the_same_answers(tmp_path: Path, how: str) -> None:
    before = answers(kept(tmp_path, *five()))
    index = tmp_path / "index.db"
    size = index.stat().st_size
    if how == "deleted":
        index.unlink()
    elif how == "another's":
        index.unlink()
        with sqlite3.connect(index) as other:
            other.execute("create table index_state (x)")
    else:
        noise = {"truncated": 5000, "halved": size // 2, "empty": 0}
        if how in noise:
            os.truncate(index, noise[how])
        else:
            with open(index, "r+b") as file:
                file.seek(0 if how == "noise" else 100)
                file.write(os.urandom(size - (0 if how == "noise" else 100)))
    assert before == answers(opened(tmp_path))
    assert before == answers(opened(tmp_path))


def test_an_index_of_a_newer_version_is_left_alone_and_the_answers_are_the_same(tmp_path: Path) -> None:
    before = answers(kept(tmp_path, *five()))
    with sqlite3.connect(tmp_path / "index.db") as index:
        index.execute("update index_state set value = '99' where name = 'schema'")
        index.execute("alter table job_metadata rename to runs")
    content = (tmp_path / "index.db").read_bytes()
    warnings: list[str] = []
    assert before == answers(opened(tmp_path, warnings))
    reason = f"written by format 99, this version of jobmeter reads up to {SCHEMA_VERSION}"
    assert [f"{tmp_path}/index.db: {reason}; this command makes an index in memory"] == warnings
    assert content == (tmp_path / "index.db").read_bytes()


def test_runs_beside_an_index_of_a_newer_version_are_labelled_and_removed(tmp_path: Path) -> None:
    kept(tmp_path, *five())
    with sqlite3.connect(tmp_path / "index.db") as index:
        index.execute("update index_state set value = '99' where name = 'schema'")
    store = opened(tmp_path, [])
    store.relabel("aaa1", {"team": "z"})
    store.remove("bbb3")
    assert ({"team": "z"}, 4) == (opened(tmp_path).labels("aaa1"), len(ids(opened(tmp_path))))


def test_an_index_of_an_older_version_is_made_anew(tmp_path: Path) -> None:
    before = answers(kept(tmp_path, *five()))
    with sqlite3.connect(tmp_path / "index.db") as index:
        index.execute("update index_state set value = '0' where name = 'schema'")
        index.execute("delete from job_metadata")
    assert before == answers(opened(tmp_path))


def test_an_index_of_other_columns_is_made_anew(tmp_path: Path) -> None:
    before = answers(kept(tmp_path, *five()))
    with sqlite3.connect(tmp_path / "index.db") as index:
        index.execute("update index_state set value = 'another' where name = 'layout'")
        index.execute("alter table job_metadata drop column read_bytes")
    assert before == answers(opened(tmp_path))


def test_people_find_runs_and_their_course_with_sqlite3(tmp_path: Path) -> None:
    kept(tmp_path, *five())
    with sqlite3.connect(tmp_path / "index.db") as index:
        query = "select job_id, job_name, timestamp, cpu_percent, memory_bytes, num_processes from job_resource_samples"
        rows = index.execute(f"{query} where job_name = 'test' order by timestamp").fetchall()
        peak = index.execute("select max(memory_peak_bytes) from job_metadata").fetchone()
    memory = [window.cells["proc_rss_total"] for window in windows(3)]
    assert [
        ("bbb3", "test", f"2026-01-31T14:00:0{second}.000Z", 80.0, memory[second - 1], 1) for second in (1, 2, 3)
    ] == rows
    assert (8 << 30,) == peak


def test_labels_are_changed_and_taken_away_and_stay_so_when_the_index_is_made_anew(tmp_path: Path) -> None:
    store = kept(tmp_path, *five())
    store.relabel("ccc4", {"team": "z", "x y": None, "new": "ü"})
    expected = {"team": "z", "new": "ü"}
    labels = [store.labels("ccc4"), store.record("ccc4")["labels"], store.journal("ccc4").header["labels"]]
    (tmp_path / "index.db").unlink()
    again = opened(tmp_path)
    assert [expected] * 4 == [*labels, again.record("ccc4")["labels"]]
    assert ["ccc4"] == ids(again, labels={"team": "z"})


def test_a_removed_run_is_gone_with_its_file_and_the_others_stay(tmp_path: Path) -> None:
    store = kept(tmp_path, *five())
    store.remove("aaa1")
    assert not journal_of(tmp_path, "aaa1").exists()
    assert ["ddd5", "ccc4", "bbb3", "aab2"] == ids(store) == ids(opened(tmp_path))
    with pytest.raises(UsageError, match="there is no run 'aaa1'"):
        store.record("aaa1")


def test_a_run_removed_from_a_file_of_many_is_gone_for_good_and_the_others_stay(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add_all([(run, windows(2), DESCRIBED) for run in five()])
    store.remove("bbb3")
    (tmp_path / "index.db").unlink()
    again = opened(tmp_path)
    assert ["ddd5", "ccc4", "aab2", "aaa1"] == ids(store) == ids(again)
    assert five()[3] == again.record("ccc4")
    again.remove_all(ids(again))
    assert [] == os.listdir(tmp_path / "journal")


def test_runs_from_elsewhere_are_kept_like_any_other(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert ["aaa1", "aab2", "bbb3", "ccc4", "ddd5"] == store.add_all((run, windows(2), DESCRIBED) for run in five())
    assert (five()[0], windows(2)) == (store.record("aaa1"), store.journal("aaa1").windows)
    assert DESCRIBED == store.journal("aaa1").header["measurements"]
    with pytest.raises(UsageError, match="run aaa1 is in the store already"):
        store.add(five()[0])


@pytest.mark.no_records
def test_times_of_any_precision_sort_among_each_other(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for run_id, started in (("b", "2026-01-31T12:30:00.123456Z"), ("a", "2026-01-31T12:00:00Z")):
        run: Any = {**record(run_id), "started": started}
        store.add(run)
    store.add({key: value for key, value in record("c").items() if key != "started"})  # type: ignore[arg-type]
    assert ["b", "a", "c"] == ids(store)
    assert ["b"] == ids(store, since=1769860801.0)


def test_a_record_that_is_not_valid_is_not_stored(tmp_path: Path) -> None:
    store = opened(tmp_path)
    run = record("c")
    run["started"] = "no time"
    with pytest.raises(UsageError, match="the record is not valid: started is 'no time', not a date and time in UTC"):
        store.add(run)
    assert [] == ids(store)


def test_a_name_that_is_no_utf_8_or_has_other_letters_is_kept_and_found(tmp_path: Path) -> None:
    store = kept(tmp_path, record("aaa1", "tr\udce4in"), record("bbb2", "Größe 🦆"))
    assert ["Größe 🦆"] == names(store, names=["Gr*"])
    assert {"tr�e4in", "Größe 🦆"} == set(names(store))
    assert "tr�e4in" == store.record("aaa1")["name"]
    assert ["tr�e4in"] == names(store, names=["tr\udce4in"]) == names(store, names=["tr�e4*"])
    assert "aaa1" == store.resolve("tr\udce4in")


@pytest.mark.no_records
def test_a_record_that_is_none_costs_only_itself(tmp_path: Path) -> None:
    warnings: list[str] = []
    kept(tmp_path, record("aaa1"))
    for number, value in enumerate((b"1" + b"0" * 400, b'{"a":1}', b"1e999", b"-1", b"NaN", b"null", b'"\\ud800"')):
        text = journal_of(tmp_path, "aaa1").read_bytes().replace(b"aaa1", b"bbb%d" % number)
        figure = b'"usage":{"cpu_seconds":{"value":%s,"from":"x","quality":"exact"}}' % value
        journal_of(tmp_path, f"bbb{number}").write_bytes(text.replace(b'"usage":{}', figure))
    broken = journal_of(tmp_path, "ccc3")
    broken.write_bytes(journal_of(tmp_path, "aaa1").read_bytes().replace(b"aaa1", b"ccc3").replace(b'"usage"', b'"us"'))
    os.utime(tmp_path / "journal")
    store = opened(tmp_path, warnings)
    assert {"aaa1", "ccc3", *(f"bbb{number}" for number in range(7))} == set(ids(store))
    assert "completed" == store.record("aaa1")["outcome"]["status"]
    assert {"lost"} == {store.record(run_id)["outcome"]["status"] for run_id in ids(store) if run_id != "aaa1"}
    assert 8 == len(warnings)
    assert f"{broken}: line 6 was skipped: record.usage is missing" == warnings[-1]


def test_labels_and_words_that_are_no_utf_8_come_back_as_they_were(tmp_path: Path) -> None:
    odd = to_text(os.fsdecode(b"caf\xe9\n"))
    run = record("aaa1", labels={"dish": odd, "ü": "é"})
    run["command"] = ["cat", odd, "ü"]
    store = kept(tmp_path, run)
    (row,) = store.runs()
    assert (["cat", odd, "ü"], {"dish": odd, "ü": "é"}) == (row["command"], row["labels"])
    assert run == store.record("aaa1")


@pytest.mark.no_records
def test_a_record_of_a_status_that_this_version_does_not_know_cannot_be_used(tmp_path: Path) -> None:
    warnings: list[str] = []
    kept(tmp_path, record("aaa1"))
    one_file(tmp_path, "bbb2", [{"schema": SCHEMA, **header("bbb2")}, {"record": record("bbb2", status="happy")}])
    store = opened(tmp_path, warnings)
    assert {"aaa1": "completed", "bbb2": "lost"} == {row["id"]: row["status"] for row in store.runs()}
    assert "lost" == store.record("bbb2")["outcome"]["status"]
    assert ["line 2 was skipped"] == [text.split(": ")[1] for text in warnings]
