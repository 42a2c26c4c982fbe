"""con-duct: the logs were written by con-duct 0.23.0 (schema 0.2.3) and 0.12.0 (schema 0.2.0, usage.json)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.reading import FIXTURES, figure, read, runs, unfinished, unusable, written


def log(name: str, folder: Path) -> Path:
    """A copy of a log, to be damaged."""
    for part in FIXTURES.glob(f"duct_{name}_*"):
        shutil.copy(part, folder)
    return folder / f"duct_{name}_info.json"


def test_the_summary_becomes_the_headline() -> None:
    record = runs(read(FIXTURES / "duct_load_info.json"))[0].record
    assert ("python3", ["/usr/bin/python3 load.py"], 2.759) == (
        record["name"], record["command"], record["wall_seconds"],
    )  # fmt: skip
    assert (71319552, "duct_rss_total", "sampled") == figure(record, "memory_peak_bytes")
    assert (64304469, "duct_rss_total", "sampled") == figure(record, "memory_mean_bytes")
    assert (100.0, "duct_pcpu_total", "sampled") == figure(record, "cpu_peak_percent")
    assert (77.38, "duct_pcpu_total", "sampled") == figure(record, "cpu_mean_percent")
    assert None is figure(record, "cpu_seconds")
    assert ("2026-11-15T21:28:36.614Z", "2026-11-15T21:28:39.373Z") == (record["started"], record["ended"])
    assert {"name": "vm", "cpus": 2, "memory_bytes": 25276518400, "kernel": "Linux 6.18.44-fc-v490"} == record["host"]
    assert ({"source": "duct"}, "/tmp/duct") == (record["labels"], record["cwd"])


def test_the_reports_become_windows() -> None:
    windows = runs(read(FIXTURES / "duct_load_info.json"))[0].windows
    assert [(0.01, 1), (1.27, 4), (2.21, 3), (2.52, 1)] == [(window.seconds, window.samples) for window in windows]
    assert {
        "duct_rss_total": 71319552,
        "duct_vsz_total": 77201408,
        "duct_pmem_total": 0.2,
        "duct_pcpu_total": [94.9, 80.87],
        "duct_processes_seen": 1,
    } == windows[2].cells


def test_older_logs_have_their_reports_in_usage_json() -> None:
    run = runs(read(FIXTURES / "duct_0.12_info.json"))[0]
    record: Any = run.record
    assert ("0.2.0", 4) == (record["provenance"]["imported"]["schema"], len(run.windows))
    assert 3 == record["measurements"]["duct_processes_seen"]["peak"]


@pytest.mark.parametrize(
    ("name", "status", "code"), [("load", "completed", 0), ("fails", "failed", 3), ("killed", "failed", 137)]
)
def test_the_exit_code_tells_how_it_ended(name: str, status: str, code: int) -> None:
    outcome = runs(read(FIXTURES / f"duct_{name}_info.json"))[0].record["outcome"]
    assert {"status": status, "exit_code": code, "signal": None} == outcome


def test_what_con_duct_never_saw_is_absent() -> None:
    run = runs(read(FIXTURES / "duct_true_info.json"))[0]
    assert ({}, {}, []) == (run.record["usage"], run.record["measurements"], run.windows)


def test_a_report_that_breaks_off_costs_only_itself(tmp_path: Path) -> None:
    info = log("load", tmp_path)
    usage = tmp_path / "duct_load_usage.jsonl"
    usage.write_text(usage.read_text()[:-20])
    run = runs(read(info))[0]
    assert 3 == len(run.windows)
    assert [f"{usage}: line 4 is left out"] == [note.partition(" (")[0] for note in run.notes]


def test_a_command_that_still_runs_is_left_for_later(tmp_path: Path) -> None:
    # con-duct makes the file when it starts and fills it when it ends.
    assert 1 == unfinished(read(written(tmp_path, "", "x_info.json")))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema_version": "0.3.0"}, "schema_version 0.3.0 is not read here: only 0.2.x"),
        ({"execution_summary": None}, "has no execution_summary"),
        ({"execution_summary": {"start_time": -5}}, "start_time -5 is not a number from 0 up"),
        ({"execution_summary": {}}, "has no start_time: its command was never started"),
        (
            {"execution_summary": {"start_time": 1.7e9, "peak_rss": 1e30}},
            "peak_rss 1e+30 is more than can be",
        ),
    ],
)
def test_a_log_that_cannot_be_used_says_why(tmp_path: Path, change: dict[str, object], why: str) -> None:
    info = json.loads((FIXTURES / "duct_load_info.json").read_text())
    assert [why] == unusable(read(written(tmp_path, json.dumps({**info, **change}), "x_info.json")))


def test_a_torn_log_is_told(tmp_path: Path) -> None:
    torn = (FIXTURES / "duct_load_info.json").read_text()[:500]
    assert "is not whole JSON" in unusable(read(written(tmp_path, torn, "x_info.json")))[0]
