"""`jobmeter export`: tables that other programs read, and records that come back as they were."""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from jobmeter.exchange.tables import run_columns
from tests.exchange.reading import FIXTURES
from tests.parts import need_module
from tests.records import parse_record
from tests.runs import keep, record

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
    assert 34 == len(rows)
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
    assert (0, "", f"jobmeter: {path}: 34 runs\n") == kept.call("export", "-o", path)
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
        f"{path}: run records of jobmeter, JSON Lines: 34 new, 0 known\n" == kept.call("import", path, store=other)[1]
    )
    assert (
        f"{path}: run records of jobmeter, JSON Lines: 0 new, 34 known\n" == kept.call("import", path, store=other)[1]
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
    assert 34 == len(list(csv.DictReader(path.open())))


def test_when_it_fails_the_old_file_stays_and_nothing_else(kept: Kept) -> None:
    folder = kept.folder / "out"
    folder.mkdir()
    path = folder / "runs.csv"
    path.write_text("old")
    code, _, told = kept.call("export", "--where", "memory_peak_bytes >", "-o", str(path))
    assert (2, True) == (code, told.startswith("jobmeter: "))
    assert (["runs.csv"], "old") == (os.listdir(folder), path.read_text())


def test_a_device_is_written_to_and_not_replaced(kept: Kept) -> None:
    kept.call("export", "-o", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_without_pyarrow_the_advice_is_to_install_it(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = kept.folder / "runs.parquet"
    code, _, told = kept.call("export", "-o", str(path))
    advice = "Parquet needs pyarrow, which is not installed. Install it: pip install 'jobmeter[parquet]'"
    assert (2, f"jobmeter: {advice}\n") == (code, told)
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
        (["nobody"], "there is no run 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_one_line(kept: Kept, arguments: list[str], why: str) -> None:
    code, out, told = kept.call("export", *arguments)
    assert (2, "", 1) == (code, out, len(told.splitlines()))
    assert told.startswith(f"jobmeter: {why}")


def test_an_empty_store_gives_the_header_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["export", "--store", str(tmp_path / "none")])
    assert [",".join(column.name for column in run_columns())] == capfd.readouterr().out.splitlines()


def test_parquet_holds_what_is_a_list_elsewhere(kept: Kept) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run = record("abcd2345", memory_peak_bytes=5)
    run["usage"]["memory_peak_bytes"]["quality"] = "at least"
    keep(kept.location, {**run, "enforced": ["cpus", "memory"]})
    path = str(kept.folder / "one.parquet")
    assert 0 == kept.call("export", "abcd2345", "-o", path)[0]
    (row,) = parquet.read_table(path).to_pylist()
    assert (["cpus", "memory"], ["memory_peak_bytes"]) == (json.loads(row["enforced"]), json.loads(row["at_least"]))
