from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobmeter import __version__
from jobmeter.collectors.contract import ProcessUse
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.record.build import as_json, complete, identity, new_run_id, this_host, this_user

if TYPE_CHECKING:
    from jobmeter.record.types import Record, RunIdentity

FIGURE = {"value": 5.0, "from": "perf_cpu_seconds", "quality": "exact"}


def begun(requirement: Requirement = Requirement()) -> RunIdentity:  # noqa: B008
    return identity(
        "abc",
        name="train",
        command=["python", "train.py"],
        requirement=requirement,
        labels={"team": "a"},
        directory="/work",
        host={"name": "here"},
        user="me",
        started=1_700_000_000.0,
    )


def ended(identity: RunIdentity) -> Record:
    return complete(
        identity,
        Outcome(Status.FAILED, 3),
        usage={"cpu_seconds": FIGURE},
        measurements={"perf_cpu_seconds": {"unit": "seconds", "kind": "counter", "total": 5.0}},
        processes=[{"pid": 42, "cmd": "sh"}],
        provenance={"samples": 12, "interval_seconds": 1.0},
        wall_seconds=10.00049,
        ended=1_700_000_010.0,
    )


def test_run_ids_are_short_plain_and_never_the_same() -> None:
    ids = {new_run_id() for _ in range(5000)}
    assert 5000 == len(ids)
    assert [] == [run_id for run_id in ids if not re.fullmatch("[a-km-np-z2-9]{12}", run_id)]


def test_what_is_known_at_the_start_is_the_first_part_of_the_record() -> None:
    expected: Any = {
        "id": "abc",
        "name": "train",
        "command": ["python", "train.py"],
        "cwd": "/work",
        "labels": {"team": "a"},
        "host": {"name": "here"},
        "user": "me",
        "started": "2023-11-14T22:13:20.000Z",
        "requirement": {"cpus": 2, "memory_bytes": 2**30},
    }
    assert expected == begun(Requirement(cpus=2, memory_bytes=2**30))


def test_what_is_not_known_is_absent() -> None:
    nothing = identity("abc", name="x", command=[], requirement=Requirement(), labels={})
    assert {"id", "name", "command", "labels", "requirement"} == nothing.keys()
    record = complete(nothing, Outcome(Status.LOST), usage={}, measurements={}, processes=[], provenance={})
    assert not {"ended", "wall_seconds", "started", "host"} & record.keys()


def test_the_host_is_this_machine_and_its_memory(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 1024 kB\nMemAvailable: 512 kB\n")
    host = this_host(Machine(proc=str(tmp_path)))
    assert (os.uname().nodename, 2**20) == (host["name"], host["memory_bytes"])
    assert 1 <= host["cpus"] <= (os.cpu_count() or 1)
    assert "" != this_user()


@pytest.mark.parametrize("content", [None, "", "MemTotal: much kB\n"])
def test_a_machine_whose_memory_is_unknown_has_none_in_the_record(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "meminfo").write_text(content)
    assert {"name", "cpus", "kernel"} == this_host(Machine(proc=str(tmp_path))).keys()


def test_nothing_requested_is_an_empty_requirement() -> None:
    nothing: Any = {}
    assert nothing == begun()["requirement"]


def test_the_whole_record_has_the_fixed_schema_and_is_json() -> None:
    record: Any = ended(begun())
    assert [
        "schema", "id", "name", "command", "cwd", "labels", "host", "user", "started", "requirement",
        "ended", "wall_seconds", "outcome", "usage", "measurements", "processes", "provenance",
    ] == list(record)  # fmt: skip
    assert {
        "ended": "2023-11-14T22:13:30.000Z",
        "wall_seconds": 10.0,
        "outcome": {"status": "failed", "exit_code": 3, "signal": None},
        "usage": {"cpu_seconds": FIGURE},
        "measurements": {"perf_cpu_seconds": {"unit": "seconds", "kind": "counter", "total": 5.0}},
        "processes": [{"pid": 42, "cmd": "sh"}],
        "provenance": {"version": __version__, "samples": 12, "interval_seconds": 1.0},
    } == {key: record[key] for key in list(record)[10:]}
    assert record == json.loads(as_json(record))


def test_bytes_of_an_argument_that_are_no_utf_8_survive_the_rendering() -> None:
    record = ended({**begun(), "command": ["cat", os.fsdecode(b"\xff.txt")]})
    assert ["cat", "�ff.txt"] == json.loads(as_json(record).encode("utf-8"))["command"]


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
def test_the_rest_of_the_processes_is_one_entry_without_a_pid(use: ProcessUse, expected: Any) -> None:
    assert expected == use.entry()
