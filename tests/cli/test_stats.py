"""`jobmeter stats`: the same numbers whichever way they are requested."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from tests.runs import keep, record
from tests.waiting import LONG

GIB = 2**30


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Ten runs of `train` of 10, 20, … 100 s on 2 CPUs, of which two failed; one of `test` without figures."""
    location = str(tmp_path / "store")
    runs = [
        record(
            f"train{number:07d}",
            "train",
            "failed" if number > 8 else "completed",
            wall_seconds=10.0 * number,
            cpu_seconds=15.0 * number,
            memory_peak_bytes=number * GIB,
            memory_mean_bytes=GIB,
            requirement={"cpus": 2.0},
            labels={"team": "a" if number % 2 else "b"},
        )
        for number in range(1, 11)
    ]
    keep(location, *runs, record("test00000001", "test", wall_seconds=1.0))
    return location


def statistics(store: str, capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert 0 == main(["stats", "--store", store, "--json", *arguments])
    result: dict[str, Any] = json.loads(capfd.readouterr().out)
    return result


def test_a_job_is_summarised_over_its_runs(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    train = statistics(store, capfd)["groups"][0]
    assert ("train", 10, 0.8) == (train["name"], train["runs"], train["success_rate"])
    assert {"p50": 55.0, "p95": 95.5, "max": 100.0} == train["wall_seconds"]
    assert {"p50": 82.5, "p95": 143.25, "max": 150.0} == train["cpu_seconds"]
    assert {"p50": 5.5 * GIB, "p95": 9.55 * GIB, "max": 10 * GIB} == pytest.approx(train["memory_peak_bytes"])
    assert pytest.approx(825 / 3600, abs=1e-6) == train["core_hours"]
    assert pytest.approx(550 / 3600, abs=1e-6) == train["gb_hours"]
    assert 0.75 == train["cpu_efficiency"]


def test_what_was_not_measured_is_absent(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    test = statistics(store, capfd)["groups"][1]
    assert {"name", "source", "runs", "success_rate", "wall_hours", "wall_seconds"} == set(test)


def test_the_total_is_of_all_groups(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    total = statistics(store, capfd)["total"]
    assert (11, pytest.approx(9 / 11, abs=1e-6)) == (total["runs"], total["success_rate"])
    assert pytest.approx(551 / 3600, abs=1e-6) == total["wall_hours"]


@pytest.mark.parametrize(
    "filters",
    [["--where", "wall_seconds >= 0"], ["--since", "2020-01-01"], ["--status", "completed", "--status", "failed"]],
)
def test_the_index_and_a_pass_over_the_runs_give_the_same(
    store: str, capfd: pytest.CaptureFixture[str], filters: list[str]
) -> None:
    assert statistics(store, capfd) == statistics(store, capfd, *filters)


def test_filters_are_those_of_ls(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert [2] == [group["runs"] for group in statistics(store, capfd, "--status", "failed")["groups"]]
    assert ["test"] == [group["name"] for group in statistics(store, capfd, "--name", "te*")["groups"]]
    assert [5] == [group["runs"] for group in statistics(store, capfd, "--label", "team=a")["groups"]]


def test_runs_are_grouped_by_a_label_and_those_without_are_a_group(
    store: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result = statistics(store, capfd, "--by", "team")
    assert [("a", 5), ("b", 5), (None, 1)] == [(group.get("team"), group["runs"]) for group in result["groups"]]
    assert 50.0 == result["groups"][0]["wall_seconds"]["p50"]


def test_csv_has_one_line_a_group(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["stats", "--store", store, "--csv"])
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert ["train", "test"] == [row["name"] for row in rows]
    assert ("95.5", "") == (rows[0]["wall_seconds_p95"], rows[1]["cpu_seconds_p95"])


def test_the_table_is_for_people(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["stats", "--store", store])
    lines = capfd.readouterr().out.splitlines()
    assert ["name", "runs", "wall_p50", "wall_p95", "wall_max"] == lines[0].split()[:5]
    assert ["train", "10", "55 s", "1m 36s", "1m 40s"] == re.split(r"  +", lines[1])[:5]
    assert "80.0 %" in lines[1]
    assert lines[-1].startswith("total")


def test_an_empty_store_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["stats", "--store", str(tmp_path / "none")])
    assert ("", "jobmeter: no runs found\n") == capfd.readouterr()


def test_a_time_that_is_none_is_one_clear_line(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["stats", "--store", store, "--since", "someday"])
    assert capfd.readouterr().err.startswith("jobmeter: --since: 'someday' is not a time. Write for example 2h")


def test_a_run_that_has_not_ended_is_no_failure(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    job = subprocess.Popen(
        [sys.executable, "-m", "jobmeter", "run", "--quiet", "--store", store, "--name", "train", "--", "sleep", "300"]
    )
    try:
        deadline = time.monotonic() + LONG
        while (train := statistics(store, capfd)["groups"][0])["runs"] < 11 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert (11, 0.8) == (train["runs"], train["success_rate"])
    finally:
        job.terminate()
        job.wait()


def mixed(folder: Path) -> str:
    """`both` was measured by jobmeter and by Slurm, `theirs` by Slurm alone, `ours` by jobmeter alone."""
    runs = []
    for number, (name, tool) in enumerate((("both", ""), ("both", "slurm"), ("theirs", "slurm"), ("ours", ""))):
        run = record(f"run{number}", name, wall_seconds=float(number + 1), cpu_seconds=1.0)
        run["provenance"] = {"imported": {"from": tool, "where": "x"}} if tool else {}
        runs.append(run)
    keep(str(folder), *runs)
    return str(folder)


@pytest.mark.parametrize("filters", [[], ["--where", "wall > 0"]], ids=["by the index", "by all runs"])
def test_figures_of_different_tools_are_never_in_one_group(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], filters: list[str]
) -> None:
    result = statistics(mixed(tmp_path), capfd, *filters)
    assert [("both", "jobmeter", 1), ("both", "slurm", 1), ("ours", "jobmeter", 1), ("theirs", "slurm", 1)] == [
        (group["name"], group["source"], group["runs"]) for group in result["groups"]
    ]
    assert 4 == result["total"]["runs"]


def test_the_table_shows_sources_where_there_are_several(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = mixed(tmp_path)
    assert 0 == main(["stats", "--store", store])
    out, err = capfd.readouterr()
    assert ["name", "source", "runs"] == out.split("\n")[0].split()[:3]
    assert (
        "jobmeter: these runs were measured by different tools; only the total adds their figures up: jobmeter, slurm\n"
        == err
    )
    assert 0 == main(["stats", "--store", store, "--name", "theirs"])
    out, err = capfd.readouterr()
    assert (["name", "runs"], "") == (out.split("\n")[0].split()[:2], err)


def test_runs_are_grouped_by_source(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    groups = statistics(mixed(tmp_path), capfd, "--by", "source")["groups"]
    assert [("jobmeter", 2), ("slurm", 2)] == [(group["source"], group["runs"]) for group in groups]


def test_a_name_of_different_commands_is_noted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs = [record(f"run{number}", "sh", wall_seconds=1.0) for number in range(3)]
    runs[0]["command"] = ["sh", "-c", "other"]
    keep(str(tmp_path), *runs)
    assert 0 == main(["stats", "--store", str(tmp_path)])
    note = "jobmeter: 2 different commands are called 'sh'; use `jobmeter run --name` to distinguish them\n"
    assert note == capfd.readouterr().err
    assert 0 == main(["size", "--store", str(tmp_path), "sh"])
    assert note == capfd.readouterr().err


@pytest.mark.parametrize("words", [["train"], ["tr*"], ["--name", "train"], ["te?t", "--name", "train"]])
def test_names_are_given_as_to_ls(store: str, capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert 0 == main(["stats", "--store", store, "--json", *words])
    groups = {group["name"] for group in json.loads(capfd.readouterr().out)["groups"]}
    assert ({"train", "test"} if "te?t" in words else {"train"}) == groups
