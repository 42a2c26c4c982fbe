from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jobmeter.cli.main import main

SPEC = """
name: Demo
jobs:
- {name: prep, command: ./prep, resource_requirements: {cpus: 2, memory: 1g, runtime: 10m}}
- name: "train_{i:03d}"
  command: "./train {i}\\n./again"
  parameters: {i: "1:100"}
  blocked_by: [prep]
  resource_requirements: {cpus: 1, memory: 2g, runtime: 1h}
- {name: report, command: ./report, blocked_by: ["train_{i:03d}"], resource_requirements: {runtime: 30s}}
"""
MACHINE = ("--cpus", "10", "--memory", "100g", "--gpus", "0")


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "demo.yaml"
    path.write_text(SPEC)
    return str(path)


def test_the_plan_is_printed_wave_after_wave(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workflow", "run", spec, "--dry-run", *MACHINE])
    expected = """\
wave  job_id  name                 requirement         blocked_by           command
   1  1       prep                 2 cpus, 1 GiB, 10m                       ./prep
   2  2-101   train_{i:03d} × 100  1 cpu, 2 GiB, 1h    prep                 ./train 1 …
   3  102     report               30 s                train_{i:03d} × 100  ./report

jobs       102
longest    prep → train_001 → report (3 jobs)
at a time  10 at most, on 10 cpus, 100 GiB
time       10h 10m 30s at most: if every job takes the runtime it requests
"""
    assert expected == capfd.readouterr().out


def test_nothing_is_started_and_nothing_kept(spec: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    assert 0 == main(["workflow", "run", spec, "--dry-run", "--store", store, *MACHINE])
    assert not os.path.exists(store)


def test_a_small_sweep_is_listed_one_by_one(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path(spec).write_text(SPEC.replace("1:100", "1:3"))
    assert 0 == main(["workflow", "run", spec, "--dry-run", *MACHINE])
    printed = capfd.readouterr().out
    assert "train_002" in printed
    assert "train_001, train_002, train_003" in printed


def test_the_time_is_not_known_when_a_job_requests_no_runtime(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path(spec).write_text(SPEC.replace(", runtime: 10m", ""))
    assert 0 == main(["workflow", "run", spec, "--dry-run", *MACHINE])
    assert "time       not known: 1 of 102 jobs request no runtime\n" in capfd.readouterr().out


def test_json_has_every_job_with_its_wave(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["workflow", "run", spec, "--dry-run", "--json", *MACHINE])
    plan = json.loads(capfd.readouterr().out)
    assert (102, 10, 36630.0) == (plan["total_jobs"], plan["concurrency"], plan["seconds_at_most"])
    assert [1, 2, 102] == plan["longest_chain"]
    assert [1, *[2] * 100, 3] == [job["wave"] for job in plan["jobs"]]
    assert [1] == plan["jobs"][1]["blocked_by"]


def test_json_goes_with_a_dry_run_only(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["workflow", "run", spec, "--json"])
    assert "--json goes with --dry-run" in capfd.readouterr().err
