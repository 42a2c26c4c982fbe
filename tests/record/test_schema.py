"""The schema of the run record: what it allows, and what it does not."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.cli.main import main
from jobmeter.model import Quality, Status
from jobmeter.record.schema import as_text, cluster_schema, run_schema
from jobmeter.record.schema_files import path_of, read_schema
from jobmeter.record.validate import check_record as problem_of
from tests.records import check_journals, check_record, parse_record, violations
from tests.running import ROOT, command_line, environment, meter, workplace
from tests.store.kept import one_file


@pytest.fixture(scope="module")
def measured() -> Any:
    """The record of a run in which everything was measured that can be."""
    return meter("sh", "-c", "sleep 0.1", options=["--measurements", "all", "--memory", "1g", "--label", "a=b"]).record


def changed(record: Any, path: str, value: Any) -> Any:
    """A copy with another value at this place; `absent` takes it away."""
    record = copy.deepcopy(record)
    *parts, last = path.split(".")
    place = record
    for part in parts:
        place = place[part]
    if value == "absent":
        del place[last]
    else:
        place[last] = value
    return record


def objects(schema: Any) -> Iterator[tuple[str, Any]]:
    yield "Record", schema
    yield from schema["$defs"].items()


def test_the_schema_in_the_package_is_generated_from_the_types() -> None:
    assert as_text(run_schema()) == read_schema("run"), "python3 scripts/make_schema.py"
    assert Path(path_of("run")).name == "run.schema.json"


def test_the_schema_of_clusters_in_the_package_is_generated_from_the_types() -> None:
    assert as_text(cluster_schema()) == read_schema("cluster"), "python3 scripts/make_schema.py"


def test_every_field_is_described() -> None:
    schema = run_schema()
    silent = [
        f"{name}.{field}"
        for name, entry in objects(schema)
        for field, about in entry.get("properties", {}).items()
        if not {"description", "$ref", "const"} & about.keys()
    ]
    assert [] == silent
    assert [] == [name for name, entry in objects(schema) if not entry.get("description")]


def test_statuses_and_qualities_are_those_of_the_code_each_with_its_meaning() -> None:
    definitions = run_schema()["$defs"]
    for terms, about in (
        (Status, definitions["OutcomeRecord"]["properties"]["status"]),
        (Quality, definitions["Figure"]["properties"]["quality"]),
    ):
        assert [term.value for term in terms] == about["enum"]
        assert [] == [term for term in terms if f"- {term.value}: {term.meaning}" not in about["description"]]


def test_a_headline_figure_that_a_later_version_adds_is_allowed(measured: Any) -> None:
    figure = {"value": 3.5, "from": "rapl_energy", "quality": "sampled"}
    assert [] == violations(changed(measured, "usage.energy_joules", figure))
    assert [] != violations(changed(measured, "usage.energy_joules", {"value": "much"}))


def test_a_record_follows_it(measured: Any) -> None:
    assert [] == violations(measured)
    assert {"gauge", "counter", "label", "category"} == {m["kind"] for m in measured["measurements"].values()}


@pytest.mark.parametrize("place", ["", "host", "outcome", "usage.cpu_seconds", "provenance", "requirement"])
def test_fields_that_a_later_version_adds_are_allowed(measured: Any, place: str) -> None:
    assert [] == violations(changed(measured, f"{place}.new".lstrip("."), {"anything": 1}))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("schema", "jobmeter.run/2", "'jobmeter.run/1' was expected"),
        ("id", "../../etc/passwd", "does not match"),
        ("outcome.status", "happy", "'happy' is not one of"),
        ("outcome", {"status": "failed", "signal": 1}, "'exit_code' is a required property"),
        ("outcome.exit_code", "0", "'0' is not valid under any of the given schemas"),
        ("usage", "absent", "'usage' is a required property"),
        ("usage.cpu_seconds.value", 2**63, "greater than the maximum"),
        ("usage.cpu_seconds.value", None, "None is not of type 'number'"),
        ("usage.cpu_seconds.value", True, "True is not of type 'number'"),
        ("usage.cpu_seconds.quality", "good", "'good' is not one of"),
        ("usage.cpu_seconds.from", "absent", "'from' is a required property"),
        ("wall_seconds", -1, "less than the minimum"),
        ("wall_seconds", "1.5", "is not of type 'number'"),
        ("started", "2026-01-31 12:00", "does not match"),
        ("ended", "2026-01-31T12:00:00+02:00", "does not match"),
        ("labels", {"a": 1}, "1 is not of type 'string'"),
        ("command", "true", "is not of type 'array'"),
        ("host.cpus", 1.5, "is not of type 'integer'"),
        ("measurements", {"x": {"unit": "bytes", "kind": "dial", "peak": 1}}, "is not valid under any"),
        ("measurements", {"x": {"unit": "bytes", "kind": "counter"}}, "is not valid under any"),
        ("processes", [{"pid": -1}], "less than the minimum"),
        ("provenance.collectors", {"perf": {"why": "no"}}, "'available' is a required property"),
    ],
)
def test_what_is_no_record_is_refused(measured: Any, path: str, value: Any, words: str) -> None:
    wrong = changed(measured, path, value)
    (violation,) = violations(wrong)
    assert words in violation
    assert problem_of(wrong) is not None


def test_a_number_too_large_for_a_float_is_refused(measured: Any) -> None:
    text = json.dumps(changed(measured, "wall_seconds", 12345)).replace("12345", "1e999")
    with pytest.raises(AssertionError, match="greater than the maximum"):
        parse_record(text)


def test_nan_is_no_json(measured: Any) -> None:
    with pytest.raises(AssertionError, match="NaN is no JSON"):
        parse_record(json.dumps(changed(measured, "wall_seconds", float("nan"))))


@pytest.mark.no_records
def test_a_journal_with_a_record_that_does_not_follow_it_fails_its_test(tmp_path: Path, measured: Any) -> None:
    wrong = changed(measured, "host.cpus", "two")
    one_file(tmp_path, "wrong", [{"schema": "jobmeter.journal/1", "id": wrong["id"]}, {"record": wrong}])
    with pytest.raises(AssertionError, match=r"\$\.host\.cpus: 'two' is not of type 'integer'"):
        check_journals(str(tmp_path))


@pytest.mark.parametrize("status", list(Status))
def test_a_record_of_every_status_follows_it(measured: Any, status: Status) -> None:
    check_record(changed(measured, "outcome.status", status.value))


def test_the_documentation_has_every_status_and_quality_with_its_meaning() -> None:
    page = Path(ROOT, "docs", "record.md").read_text()
    assert [] == [term for term in (*Status, *Quality) if f"| `{term}` | {term.meaning} |\n" not in page]


def test_a_run_that_runs_and_one_that_is_lost_follow_it(capfd: pytest.CaptureFixture[str]) -> None:
    folder = workplace()
    options = ["--store", folder, "--interval", "0.05", "--window", "0.1"]
    job = ["sh", "-c", f"echo $$ >{folder}/pid; exec sleep 100"]
    runner = subprocess.Popen(command_line(["run", *options, "--", *job]), env=environment())
    while not any(b"columns" in path.read_bytes() for path in Path(folder, "journal").glob("*.jsonl")):
        time.sleep(0.02)
    for status in ("running", "lost"):
        assert 0 == main(["show", "--json", "--store", folder, "last"])
        record = parse_record(capfd.readouterr().out)
        assert (status, True) == (record["outcome"]["status"], "proc_processes" in record["measurements"])
        runner.kill()
        runner.wait()
    os.kill(int(Path(folder, "pid").read_text()), signal.SIGKILL)
