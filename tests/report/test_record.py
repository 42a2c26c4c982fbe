from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from jobmeter import __version__
from jobmeter.collectors.contract import ProcessUse
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.model import Across, Kind, Measurement, Outcome, Quality, Record, Requirement
from jobmeter.report.record import complete, identity, new_run_id, process_entry

CPU = Measurement("perf_cpu_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.EXACT, "CPU time.")


def begun(folder: Path, requirement: Requirement = Requirement()) -> Record:  # noqa: B008
    return identity(
        "abc",
        command=["python", "train.py"],
        name="train",
        directory="/work",
        labels={"team": "a"},
        requirement=requirement,
        started=1_700_000_000.0,
        machine=Machine(proc=str(folder)),
    )


def ended(record: Record, *, left_running: int = 0, processes: tuple[ProcessUse, ...] = ()) -> Record:
    return complete(
        record,
        Outcome("failed", 3),
        summary={"perf_cpu_seconds": {"unit": "seconds", "kind": "counter", "total": 5.0}},
        processes=list(processes),
        measurements={"perf_cpu_seconds": CPU},
        wall_seconds=10.00049,
        ended=1_700_000_010.0,
        left_running=left_running,
        complete_figures=left_running == 0,
        provenance={"samples": 12, "interval_seconds": 1.0},
    )


def test_run_ids_are_short_plain_and_never_the_same() -> None:
    ids = {new_run_id() for _ in range(5000)}
    assert 5000 == len(ids)
    assert [] == [run_id for run_id in ids if not re.fullmatch("[a-km-np-z2-9]{12}", run_id)]


def test_what_is_known_at_the_start_is_the_first_part_of_the_record(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 1024 kB\nMemAvailable: 512 kB\n")
    record = begun(tmp_path, Requirement(cpus=2, memory_bytes=2**30))
    assert {
        "id": "abc",
        "name": "train",
        "command": ["python", "train.py"],
        "cwd": "/work",
        "labels": {"team": "a"},
        "started": "2023-11-14T22:13:20.000Z",
        "requirement": {"cpus": 2, "memory_bytes": 2**30},
    } == {key: value for key, value in record.items() if key not in ("host", "user")}
    assert (os.uname().nodename, 2**20) == (record["host"]["name"], record["host"]["memory_bytes"])
    assert 1 <= record["host"]["cpus"] <= (os.cpu_count() or 1)
    assert "" != record["user"]


@pytest.mark.parametrize("content", [None, "", "MemTotal: much kB\n"])
def test_a_machine_that_does_not_tell_its_memory_has_none_in_the_record(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "meminfo").write_text(content)
    assert {"name", "cpus", "kernel"} == begun(tmp_path)["host"].keys()


def test_nothing_asked_for_is_an_empty_requirement(tmp_path: Path) -> None:
    assert {} == begun(tmp_path)["requirement"]


def test_the_whole_record_has_the_fixed_schema_and_is_json(tmp_path: Path) -> None:
    record = ended(begun(tmp_path), processes=(ProcessUse(Identity(42, 1), "sh", 1.5, 4096, 2.0),))
    assert [
        "schema", "id", "name", "command", "cwd", "labels", "host", "user", "started", "requirement",
        "ended", "wall_seconds", "outcome", "usage", "measurements", "processes", "provenance",
    ] == list(record)  # fmt: skip
    assert {
        "ended": "2023-11-14T22:13:30.000Z",
        "wall_seconds": 10.0,
        "outcome": {"status": "failed", "exit_code": 3, "signal": None},
        "measurements": {"perf_cpu_seconds": {"unit": "seconds", "kind": "counter", "total": 5.0}},
        "processes": [{"pid": 42, "cmd": "sh", "cpu_seconds": 1.5, "rss_peak_bytes": 4096, "seconds": 2.0}],
        "provenance": {
            "version": __version__,
            "selected": ["perf_cpu_seconds"],
            "samples": 12,
            "interval_seconds": 1.0,
        },
    } == {key: record[key] for key in ("ended", "wall_seconds", "outcome", "measurements", "processes", "provenance")}
    assert {"value": 5.0, "from": "perf_cpu_seconds", "quality": "exact"} == record["usage"]["cpu_seconds"]
    assert record == json.loads(json.dumps(record))


def test_a_job_that_left_processes_running_says_so_and_used_at_least_that(tmp_path: Path) -> None:
    record = ended(begun(tmp_path), left_running=2)
    assert (2, "at least") == (record["provenance"]["left_running"], record["usage"]["cpu_seconds"]["quality"])


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (
            ProcessUse(Identity(7, 1), "make", 1.0, 10, 2.0),
            {"pid": 7, "cmd": "make", "cpu_seconds": 1.0, "rss_peak_bytes": 10, "seconds": 2.0},
        ),
        (
            ProcessUse(Identity(0, 0), "5 more", 1.0, 10, 2.0, together=5),
            {"cmd": "5 more", "cpu_seconds": 1.0, "rss_peak_bytes": 10, "seconds": 2.0, "processes": 5},
        ),
    ],
    ids=["one", "the rest"],
)
def test_the_rest_of_the_processes_is_one_entry_without_a_pid(use: ProcessUse, expected: dict[str, Any]) -> None:
    assert expected == process_entry(use)
