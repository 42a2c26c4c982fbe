"""`jobmeter compare`: runs and groups, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from tests.runs import keep, record

MIB = 2**20


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Six runs of version 1, six of version 2 that take 31 % more memory and as long, and one that failed early."""
    location = str(tmp_path / "store")
    runs = [
        record(
            f"{letter}run{number:08d}",
            f"train-{letter}",
            wall_seconds=10.0 + (number * 7 % 5) / 10 + share / 1e5,
            memory_peak_bytes=(share + number) * MIB,
            labels={"version": version},
        )
        for letter, version, share in (("a", "1", 1000), ("b", "2", 1310))
        for number in range(6)
    ]
    keep(location, *runs, record("cfailed00000", "train-b", "failed", wall_seconds=0.1, labels={"version": "2"}))
    return location


def compared(store: str, capfd: pytest.CaptureFixture[str], a: str, b: str) -> dict[str, Any]:
    assert 0 == main(["compare", "--store", store, "--json", a, b])
    comparison: dict[str, Any] = json.loads(capfd.readouterr().out)
    return {
        "runs": (comparison["a"]["runs"], comparison["b"]["runs"]),
        **{entry["key"]: entry for entry in comparison["measures"]},
    }


@pytest.mark.parametrize(("a", "b"), [("name=train-a", "name=train-b"), ("label.version=1", "label.version=2")])
def test_groups_are_compared_by_the_runs_that_completed(
    store: str, capfd: pytest.CaptureFixture[str], a: str, b: str
) -> None:
    measures = compared(store, capfd, a, b)
    assert (6, 6) == measures["runs"]
    memory = measures["memory_peak_bytes"]
    assert ("regression", pytest.approx(1.309, abs=0.001)) == (memory["verdict"], memory["ratio"])
    assert 310 * MIB == memory["difference"]
    assert pytest.approx(2 / 924) == memory["p"]
    assert memory["interval"][0] < memory["ratio"] < memory["interval"][1]
    assert "none" == measures["wall_seconds"]["verdict"]


def test_a_regression_is_reported_in_words(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["compare", "--store", store, "name=train-a", "name=train-b"])
    printed = capfd.readouterr()
    assert "memory_peak rose by 31 % (95 % interval 31 to 31 %, p = 0.0022): a regression" in printed.out
    assert "wall: no significant difference" in printed.out
    assert "1 of 7 runs did not complete and are left out" in printed.err


def test_several_runs_are_named_with_commas(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    names = [",".join(f"{letter}run{number:08d}" for number in range(4)) for letter in "ab"]
    measures = compared(store, capfd, *names)
    assert (4, 4) == measures["runs"]
    assert pytest.approx(2 / 70) == measures["memory_peak_bytes"]["p"]


def test_two_runs_are_compared_without_a_significance_test(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    memory = compared(store, capfd, "arun00000000", "brun00000000")["memory_peak_bytes"]
    assert ("untested", 310 * MIB) == (memory["verdict"], memory["difference"])
    assert "p" not in memory


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing", "name=train-a"], "nothing"),
        (["name=none*", "name=train-a"], "'name=none*': no run"),
        (["label.version", "name=train-a"], "'label.version' is not label.KEY=VALUE"),
        (["name=train-a,arun00000000", "last"], "not both"),
        (["last", "last", "--threshold", "much"], "--threshold: 'much' is not a percentage"),
    ],
)
def test_bad_input_is_one_clear_line(
    store: str, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert 2 == main(["compare", "--store", store, *arguments])
    printed = capfd.readouterr()
    assert "" == printed.out
    assert words in printed.err
    assert 1 == printed.err.count("\n")


def test_a_run_in_both_groups_is_refused(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    for a, b, which in (
        ("name=train-a", "name=train-*", "6 runs are in both 'name=train-a' and 'name=train-*'."),
        ("arun00000000", "arun00000000,brun00000000", "run arun00000000 is in both"),
    ):
        assert 2 == main(["compare", "--store", store, a, b])
        err = capfd.readouterr().err
        assert which in err
        assert err.endswith("Name groups that have no run in common.\n")


def test_figures_of_different_tools_and_commands_are_compared_with_a_note(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = [record(f"run{number}", wall_seconds=1.0, cpu_seconds=1.0) for number in range(3)]
    runs[0]["command"] = ["other"]
    runs[2]["provenance"] = {"imported": {"from": "slurm", "where": "sacct.txt: line 2"}}
    store = str(tmp_path / "mixed")
    keep(store, *runs)
    assert 0 == main(["compare", "--store", store, "--json", "source=jobmeter", "source=slurm"])
    out, err = capfd.readouterr()
    assert (["jobmeter"], ["slurm"]) == tuple(json.loads(out)[side]["sources"] for side in "ab")
    assert [
        "jobmeter: these are figures of different tools, which measure in different ways: A is of jobmeter, B of slurm",
        "jobmeter: 2 different commands are called 'train'; use `jobmeter run --name` to distinguish them",
    ] == err.splitlines()
    assert 0 == main(["compare", "--store", store, "run0", "run1"])
    assert "" == capfd.readouterr().err
