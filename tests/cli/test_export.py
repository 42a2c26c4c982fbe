"""`jobmeter export`: tables that other programs read, and records that come back as they were."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import os
import re
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from jobmeter.exchange.tables import run_columns
from jobmeter.store import open_store
from tests.exchange.reading import FIXTURES
from tests.parts import need_module
from tests.records import parse_record
from tests.running import environment
from tests.runs import DESCRIBED, keep, record, windows
from tests.terminal import Terminal, visible

FILES = sorted(str(path) for path in FIXTURES.iterdir() if "usage" not in path.name)


class Kept:
    """A store of imported runs, and `jobmeter export` from it."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.location = str(folder / "store")
        self._capture = capture
        self.call("import", *FILES)

    def call(self, command: str, *arguments: str, store: str | None = None) -> tuple[int, str, str]:
        code = main([command, "--store", store or self.location, *arguments])
        printed = self._capture.readouterr()
        return code, printed.out, printed.err

    def export(self, *arguments: str) -> str:
        code, out, err = self.call("export", *arguments)
        assert (0, "") == (code, err)
        if "--records" in arguments:
            for line in out.splitlines():
                parse_record(line)
        return out

    def table(self, *arguments: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.export(*arguments))))

    def lines(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.export("--format", "jsonl", *arguments).splitlines()]


@pytest.fixture
def kept(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")  # sacct writes the cluster's local time
        time.tzset()
        yield Kept(tmp_path, capfd)
    time.tzset()


def test_csv_is_one_row_a_run_with_empty_cells_for_what_is_absent(kept: Kept) -> None:
    rows = kept.table()
    assert 32 == len(rows)
    assert [column.name for column in run_columns()] == list(rows[0])
    quick = next(row for row in rows if row["name"] == "quick")
    assert ("completed", "0", "0.001", "", "") == tuple(
        quick[name] for name in ("status", "exit_code", "cpu_seconds", "memory_peak_bytes", "command")
    )
    assert {"source": "slurm", "job_id": "2", "partition": "main"} == json.loads(quick["labels"])


def test_json_lines_have_no_key_for_what_is_absent(kept: Kept) -> None:
    rows = kept.lines("--name", "quick", "--label", "source=slurm")
    assert [0.001] == [row["cpu_seconds"] for row in rows]
    assert {"source": "slurm", "job_id": "2", "partition": "main"} == rows[0]["labels"]
    assert not {"memory_peak_bytes", "signal", "command"} & rows[0].keys()
    assert all(value is not None for row in kept.lines() for value in row.values())


def test_filters_are_those_of_ls(kept: Kept) -> None:
    assert {"dies", "toobig", "sh"} == {row["name"] for row in kept.table("--status", "killed")}
    large = kept.table("--where", "memory_peak_bytes > 1GiB")
    assert {"ALIGN", "percpu"} == {row["name"] for row in large}


def test_runs_are_named_as_elsewhere(kept: Kept) -> None:
    ids = [row["id"] for row in kept.table()]
    assert [ids[0], ids[5]] == [row["id"] for row in kept.table(ids[0], ids[5][:8], ids[0])]
    assert ["train"] == [row["name"] for row in kept.table("train")]


def test_windows_are_one_row_each_with_peak_and_mean(kept: Kept) -> None:
    assert 4 == len(kept.table("--windows", "--name", "python3", "--label", "source=duct"))
    third = kept.lines("--windows", "--label", "source=duct", "--name", "python3")[2]
    assert {
        "name": "python3",
        "seconds": 2.21,
        "timestamp": "2026-11-15T21:28:38.824Z",
        "samples": 3,
        "duct_rss_total_peak": 71319552,
        "duct_rss_total_mean": 71319552,
        "duct_vsz_total_peak": 77201408,
        "duct_vsz_total_mean": 77201408,
        "duct_pmem_total_peak": 0.2,
        "duct_pmem_total_mean": 0.2,
        "duct_pcpu_total_peak": 94.9,
        "duct_pcpu_total_mean": 80.87,
        "duct_processes_seen_peak": 1,
        "duct_processes_seen_mean": 1,
    } == {key: value for key, value in third.items() if key != "id"}


def test_parquet_has_types_and_null_for_what_is_absent(kept: Kept) -> None:
    parquet = need_module("pyarrow.parquet")
    path = str(kept.folder / "runs.parquet")
    assert (0, "", f"jobmeter: {path}: 32 runs\n") == kept.call("export", "-o", path)
    table = parquet.read_table(path)
    types = {field.name: str(field.type) for field in table.schema}
    assert ("string", "int64", "double", "timestamp[ms, tz=UTC]") == tuple(
        types[name] for name in ("name", "memory_peak_bytes", "cpu_seconds", "started")
    )
    rows = {row["name"]: row for row in table.to_pylist()}
    assert (219732 * 1024, 2.059) == (rows["train"]["memory_peak_bytes"], rows["train"]["cpu_seconds"])
    assert (None, None) == (rows["quick"]["memory_peak_bytes"], rows["quick"]["signal"])
    assert datetime.datetime(2026, 11, 15, 21, 41, 23, tzinfo=datetime.timezone.utc) == rows["train"]["started"]


def test_windows_as_parquet(kept: Kept) -> None:
    parquet = need_module("pyarrow.parquet")
    path = str(kept.folder / "windows.parquet")
    assert (0, "", f"jobmeter: {path}: 12 windows\n") == kept.call("export", "--windows", "-o", path)
    table = parquet.read_table(path)
    assert 144498688 == max(table["duct_rss_total_peak"].to_pylist())


@pytest.mark.parametrize("windows", [[], ["--windows"]])
def test_records_come_back_as_they_were(kept: Kept, windows: list[str]) -> None:
    path, again = str(kept.folder / "all.jsonl"), str(kept.folder / "again.jsonl")
    other = str(kept.folder / "other")
    kept.call("export", "--records", *windows, "-o", path)
    assert (
        f"{path}: run records of jobmeter, JSON Lines: 32 new, 0 known\n" == kept.call("import", path, store=other)[1]
    )
    assert (
        f"{path}: run records of jobmeter, JSON Lines: 0 new, 32 known\n" == kept.call("import", path, store=other)[1]
    )
    kept.call("export", "--records", *windows, "-o", again, store=other)
    assert sorted(Path(path).read_text().splitlines()) == sorted(Path(again).read_text().splitlines())
    assert sum(len(json.loads(line).get("windows", [])) for line in Path(again).read_text().splitlines()) == (
        12 if windows else 0
    )


def test_a_file_takes_its_place_whole_and_keeps_its_permissions(kept: Kept) -> None:
    path = kept.folder / "runs.csv"
    path.write_text("old")
    path.chmod(0o640)
    link = kept.folder / "link.csv"
    link.symlink_to(path)
    kept.call("export", "-o", str(link))
    assert (True, 0o640) == (link.is_symlink(), stat.S_IMODE(path.stat().st_mode))
    assert 32 == len(list(csv.DictReader(path.open())))


def test_when_it_fails_the_old_file_stays_and_nothing_else(kept: Kept) -> None:
    folder = kept.folder / "out"
    folder.mkdir()
    path = folder / "runs.csv"
    path.write_text("old")
    code, _, err = kept.call("export", "--where", "memory_peak_bytes >", "-o", str(path))
    assert (2, True) == (code, err.startswith("jobmeter: "))
    assert (["runs.csv"], "old") == (os.listdir(folder), path.read_text())


def test_a_device_is_written_to_and_not_replaced(kept: Kept) -> None:
    kept.call("export", "-o", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_without_pyarrow_the_advice_is_to_install_it(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = kept.folder / "runs.parquet"
    code, _, err = kept.call("export", "-o", str(path))
    advice = "Parquet needs pyarrow, which is not installed. Install it: pip install 'jobmeter[parquet]'"
    assert (2, f"jobmeter: {advice}\n") == (code, err)
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--format", "parquet"], "parquet is binary: name a file with -o FILE"),
        (["--records", "--format", "csv"], "--records are written as jsonl, not as csv"),
        (["train", "--name", "train"], "name runs or filter them, not both"),
        (["-o", "/no/such/place.csv"], "-o: /no/such/place.csv: cannot be written there."),
        (["-o", "/tmp"], "-o: /tmp: cannot be written there."),
        (["--format", "xml"], "argument --format: invalid choice: 'xml'"),
        (["-o", "/tmp/runs.xml"], "-o: /tmp/runs.xml: its ending names no format. Choose one of .csv .json .jsonl "),
        (["-o", "/tmp/runs"], "-o: /tmp/runs: its ending names no format."),
        (["--format", "sqlite"], "sqlite is binary: name a file with -o FILE"),
        (["--windows", "-o", "/tmp/runs.db"], "--windows: a database has the time series in any case"),
        (["nobody"], "there is no run 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_one_line(kept: Kept, arguments: list[str], why: str) -> None:
    code, out, err = kept.call("export", *arguments)
    assert (2, "", 1) == (code, out, len(err.splitlines()))
    assert err.startswith(f"jobmeter: {why}")


def test_an_empty_store_gives_the_header_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["export", "--store", str(tmp_path / "none")])
    assert [",".join(column.name for column in run_columns())] == capfd.readouterr().out.splitlines()


def test_parquet_holds_what_is_a_list_elsewhere(kept: Kept) -> None:
    parquet = need_module("pyarrow.parquet")
    run = record("abcd2345", memory_peak_bytes=5)
    run["usage"]["memory_peak_bytes"]["quality"] = "at least"
    keep(kept.location, {**run, "enforced": ["cpus", "memory"]})
    path = str(kept.folder / "one.parquet")
    assert 0 == kept.call("export", "abcd2345", "-o", path)[0]
    (row,) = parquet.read_table(path).to_pylist()
    assert (["cpus", "memory"], ["memory_peak_bytes"]) == (json.loads(row["enforced"]), json.loads(row["at_least"]))


def test_the_ending_of_the_file_names_the_format(kept: Kept) -> None:
    for name in ("runs.json", "runs.JSONL", "runs.ndjson", "runs.csv"):
        assert 0 == kept.call("export", "-o", str(kept.folder / name))[0]
    array = json.loads((kept.folder / "runs.json").read_text())
    lines = [json.loads(line) for line in (kept.folder / "runs.JSONL").read_text().splitlines()]
    assert (32, array, lines) == (len(array), lines, kept.lines())
    assert (kept.folder / "runs.ndjson").read_text() == (kept.folder / "runs.JSONL").read_text()
    assert (kept.folder / "runs.csv").read_text() == kept.export()


def test_json_of_nothing_is_an_empty_array(kept: Kept) -> None:
    assert [] == json.loads(kept.export("--format", "json", "--name", "nobody"))
    assert [] == json.loads(kept.export("--format", "json", "--name", "nobody"))


def test_windows_as_json_are_the_same_rows(kept: Kept) -> None:
    assert json.loads(kept.export("--windows", "--format", "json")) == kept.lines("--windows")
    assert 12 == len(kept.lines("--windows"))


def test_without_a_time_series_it_says_so_and_writes_the_columns_alone(kept: Kept) -> None:
    code, out, err = kept.call("export", "--windows", "--label", "source=slurm")
    assert (0, "id,name,seconds,timestamp,samples\n") == (code, out)
    assert "jobmeter: none of these runs has a time series\n" == err


def test_journals_without_a_time_series_are_not_read(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("a journal was read")

    monkeypatch.setattr("jobmeter.exchange.window_table.WindowReader", fail)
    monkeypatch.setattr("jobmeter.exchange.pieces.read_journal", fail)
    assert 0 == kept.call("export", "--windows", "--label", "source=slurm")[0]


def many_runs(folder: Path, count: int) -> str:
    """A store of so many runs, with different columns."""
    location = str(folder / "many")
    cells = windows(3)
    other = [window._replace(cells={"proc_processes": 3, "proc_rss_total": [9, 4]}) for window in cells]
    store = open_store(location, print)
    runs: list[Any] = [
        {**record(f"run{number:05d}", name=f"job{number % 7}"), "started": started(number)} for number in range(count)
    ]
    store.add_all([(run, other if number % 3 else cells, DESCRIBED) for number, run in enumerate(runs)])
    return location


def started(number: int) -> str:
    return f"2026-01-31T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"


@pytest.mark.parametrize("arguments", [["--windows"], ["--windows", "--format", "jsonl"], ["--windows", "--records"]])
def test_several_processes_write_what_one_writes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    location = many_runs(tmp_path, 1500)
    texts = []
    for alone in (False, True):
        if alone:
            monkeypatch.setattr("jobmeter.store.ordered_map.can_start_children", lambda: False)
        assert 0 == main(["export", "--store", location, *arguments])
        texts.append(capfd.readouterr().out)
    assert texts[0] == texts[1]
    ids = [line.partition("run0")[2][:4] for line in texts[0].splitlines() if "run0" in line]
    assert [f"{number:04d}" for number in range(1499, -1, -1)] == list(dict.fromkeys(ids))  # the newest first
    assert len(ids) == (1500 if "--records" in arguments else 4500)


def test_a_bad_line_costs_its_window_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    location = many_runs(tmp_path, 5)
    (journal,) = Path(location, "journal").iterdir()
    lines = journal.read_bytes().splitlines(keepends=True)
    bad = next(number for number, line in enumerate(lines) if line.startswith(b"["))
    lines[bad] = b"[1.0,\n"
    journal.write_bytes(b"".join(lines))
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        Path(location, name).unlink(missing_ok=True)
    assert 0 == main(["export", "--store", location, "--windows"])
    assert 14 == len(list(csv.DictReader(io.StringIO(capfd.readouterr().out))))


def rows_of(path: Path, statement: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute(statement).fetchall()


def test_a_database_has_the_runs_and_their_samples(kept: Kept) -> None:
    path = kept.folder / "runs.db"
    assert (0, "", f"jobmeter: {path}: 32 runs\n") == kept.call("export", "-o", str(path))
    assert [(32, 32, 1, 32)] == rows_of(
        path, "SELECT count(*), count(DISTINCT job_id), min(job_id), max(job_id) FROM job_metadata"
    )
    oldest = kept.lines()[-1]
    assert [(oldest["id"], oldest["name"])] == rows_of(
        path, "SELECT run_id, job_name FROM job_metadata WHERE job_id = 1"
    )
    load = rows_of(path, "SELECT job_id FROM job_metadata WHERE job_name = 'python3' AND wall_seconds = 2.759")[0][0]
    samples = rows_of(
        path,
        "SELECT job_name, timestamp, cpu_percent, memory_bytes, num_processes FROM job_resource_samples "
        f"WHERE job_id = {load} ORDER BY timestamp",
    )
    assert 4 == len(samples)
    assert ("python3", "2026-11-15T21:28:38.824Z", 80.87, 71319552, None) == samples[2]
    assert [(12,)] == rows_of(path, "SELECT count(*) FROM job_resource_samples")


def test_a_database_of_a_workflow_has_its_job_numbers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    location = str(tmp_path / "store")
    runs = [
        {**record(run_id, name=name), "started": started(number), "workflow": {"id": "sweep", "run_id": 1, **job}}
        for number, (run_id, name, job) in enumerate(
            [
                ("aaaa", "fit", {"job_id": 7, "step": "fit", "attempt": 1}),
                ("bbbb", "fit", {"job_id": 7, "step": "fit", "attempt": 2}),
                ("cccc", "sum", {"job_id": 2, "step": "sum", "attempt": 1}),
            ]
        )
    ]
    keep(location, *runs, cells=windows(2))
    path = tmp_path / "runs.sqlite"
    assert 0 == main(["export", "--store", location, "-o", str(path)])
    assert [(7, 1, "aaaa"), (7, 2, "bbbb"), (2, 1, "cccc")] == rows_of(
        path, "SELECT job_id, attempt, run_id FROM job_metadata"
    )
    assert [(4,)] == rows_of(path, "SELECT count(*) FROM job_resource_samples WHERE job_id = 7")
    # With a run of no workflow among them, numbers of the workflow would mean two things.
    keep(location, {**record("dddd"), "started": started(9)})
    assert 0 == main(["export", "--store", location, "-o", str(path)])
    assert [(1,), (2,), (3,), (4,)] == rows_of(path, "SELECT job_id FROM job_metadata")


def test_on_a_terminal_it_shows_how_many_runs_were_written(tmp_path: Path) -> None:
    location = many_runs(tmp_path, 1500)
    words = [sys.executable, "-m", "jobmeter", "export", "--store", location, "--windows", "-o", "windows.csv"]
    shown = Terminal(words, environment(), cwd=tmp_path, columns=120).finish()
    assert (0, ["jobmeter: windows.csv: 4500 windows", ""]) == (shown.code, visible(shown.text))
    assert re.search(r"windows\.csv: [\d,]+ of 1,500 runs", shown.text)
