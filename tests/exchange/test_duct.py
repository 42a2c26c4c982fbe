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
def test_the_outcome_follows_from_the_exit_code(name: str, status: str, code: int) -> None:
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
        ({"schema_version": "0.3.0"}, "schema_version 0.3.0 is not read here: only 0.1.x and 0.2.x"),
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


def test_a_torn_log_is_reported(tmp_path: Path) -> None:
    torn = (FIXTURES / "duct_load_info.json").read_text()[:500]
    assert "is not whole JSON" in unusable(read(written(tmp_path, torn, "x_info.json")))[0]


SCHEMA_0_1 = {
    "command": "singularity run app.sif /data",
    "system": {"uid": "ada", "memory_total": 1 << 40, "cpu_total": 32, "hostname": "node7"},
    "env": {},
    "gpu": [{"index": "0", "name": "a GPU", "memory.total": "40960 MiB"}],
    "duct_version": "0.4.0",
    "schema_version": "0.1.0",
    "execution_summary": {
        "exit_code": 0, "command": "singularity run app.sif /data", "logs_prefix": "old/", "wall_clock_time": 120.5,
        "peak_rss": 5 << 30, "average_rss": 3.5e9, "peak_vsz": 9 << 30, "average_vsz": 8e9, "peak_pmem": 0.5,
        "average_pmem": 0.25, "peak_pcpu": 400.0, "average_pcpu": 150.5, "num_samples": 118, "num_reports": 2,
    },
    "output_paths": {"info": "old/info.json", "prefix": "old/"},
}  # fmt: skip


def old_report(second: int, rss: int) -> str:
    totals = {"pmem": 0.1, "pcpu": 100.0, "rss": rss, "vsz": 2 * rss}
    entry = {"timestamp": f"2024-10-08T14:37:{second:02d}.5-04:00", "num_samples": 1, "processes": {}}
    return json.dumps({**entry, "totals": totals, "averages": {**totals, "num_samples": 1}})


def test_schema_0_1_has_no_times_and_is_dated_by_its_first_report(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(SCHEMA_0_1), "info.json")
    written(tmp_path, f"{old_report(0, 5)}\n{old_report(20, 9)}\n", "usage.json")
    run = runs(read(path))[0]
    record: Any = run.record
    assert ("2024-10-08T18:37:00.500Z", "2024-10-08T18:39:01.000Z") == (record["started"], record["ended"])
    assert ("singularity", "ada", "node7") == (record["name"], record["user"], record["host"]["name"])
    assert (5 << 30, "duct_rss_total", "sampled") == figure(record, "memory_peak_bytes")
    assert [0.0, 20.0] == [window.seconds for window in run.windows]
    imported = record["provenance"]["imported"]
    assert ("0.1.0", "its first report") == (imported["schema"], imported["times_from"])


def test_schema_0_1_without_reports_is_dated_by_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(SCHEMA_0_1), "info.json")
    record: Any = runs(read(path))[0].record
    assert "the file's time of change" == record["provenance"]["imported"]["times_from"]
    other = {**SCHEMA_0_1, "execution_summary": {**SCHEMA_0_1["execution_summary"], "wall_clock_time": 9.0}}  # type: ignore[dict-item]
    assert record["id"] != runs(read(written(tmp_path, json.dumps(other), "b_info.json")))[0].record["id"]


BEFORE_0_2 = {
    **SCHEMA_0_1,
    "duct_version": "0.1.1",
    "execution_summary": {
        "exit_code": 3, "command": "sleep 1", "logs_prefix": "old/", "wall_clock_time": "1.001 sec",
        "peak_rss": "29160 KiB", "average_rss": "1561.905 KiB", "peak_vsz": "221584 KiB",
        "average_vsz": "216308.190 KiB", "peak_pmem": "0.5%", "average_pmem": "0.250%", "peak_pcpu": "141.0%",
        "average_pcpu": "unknown%", "num_samples": 42, "num_reports": 11,
    },
}  # fmt: skip
"""What con-duct 0.1.1 wrote, which named no schema."""
del BEFORE_0_2["schema_version"]


def test_amounts_with_units_of_con_duct_before_0_2_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(BEFORE_0_2), "info.json")
    totals = {"pmem": 0.5, "pcpu": 141.0, "rss_kb": 29160, "vsz_kb": 221584}
    averages = {"rss": 1561.5, "vsz": 216308.0, "pmem": 0.25, "pcpu": 70.5, "num_samples": 2}
    report = {"timestamp": "2024-08-01T14:37:00.5-04:00", "num_samples": 2, "processes": {"7": {}}, "totals": totals}
    written(tmp_path, json.dumps({**report, "averages": averages}) + "\n", "usage.json")
    run = runs(read(path))[0]
    record: Any = run.record
    assert (29160 << 10, "duct_rss_total", "sampled") == figure(record, "memory_peak_bytes")
    assert (1.001, 3) == (record["wall_seconds"], record["outcome"]["exit_code"])
    measured = record["measurements"]
    assert {"peak": 29160 << 10, "mean": 1599391} == {
        field: measured["duct_rss_total"][field] for field in ("peak", "mean")
    }
    assert (0.5, 0.25) == (measured["duct_pmem_total"]["peak"], measured["duct_pmem_total"]["mean"])
    assert (141.0, None) == (measured["duct_pcpu_total"]["peak"], measured["duct_pcpu_total"].get("mean"))
    assert [29160 << 10, 1598976] == run.windows[0].cells["duct_rss_total"]
    assert [221584 << 10, 216308 << 10] == run.windows[0].cells["duct_vsz_total"]
    assert ([], "2024-08-01T18:37:00.500Z") == (list(run.notes), record["started"])


@pytest.mark.parametrize("amount", ["29160 MiB", "1e9 KiB", "-1 KiB", "KiB", "9" * 400 + " KiB", "١ KiB", "known"])
def test_an_amount_with_another_unit_is_refused(tmp_path: Path, amount: str) -> None:
    summary: Any = BEFORE_0_2["execution_summary"]
    info = {**BEFORE_0_2, "execution_summary": {**summary, "peak_rss": amount}}
    (why,) = unusable(read(written(tmp_path, json.dumps(info), "info.json")))
    assert why.startswith("peak_rss ")
    assert why.endswith("is not a number")
