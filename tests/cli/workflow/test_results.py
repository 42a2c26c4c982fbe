from __future__ import annotations

import csv
import io

import pytest

from jobmeter.cli.workflow.results import _row, as_json
from jobmeter.units import without_unit
from jobmeter.workflow.attempts import Attempt, of_row
from tests.workflow.live import Place

FIELDS = [
    "job_id", "name", "attempt", "status", "wall_seconds", "memory_peak_bytes", "memory_mean_bytes",
    "cpu_peak_percent", "cpu_mean_percent", "return_code",
]  # fmt: skip
SPEC = """
name: told
jobs:
  - {name: good, command: 'true'}
  - {name: bad, command: '[ $JOBMETER_ATTEMPT = 3 ] || exit 9', retry: {times: 1, on: [9]}}
  - {name: shot, command: 'kill -9 $$'}
"""


@pytest.fixture
def finished(place: Place) -> Place:
    assert 1 == place.run(SPEC).returncode
    return place


def test_each_attempt_is_a_row_with_its_figures(finished: Place) -> None:
    rows = list(csv.reader(io.StringIO(finished.call("results", "--csv").stdout)))
    assert FIELDS == rows[0]
    assert [
        ["1", "good", "1", "completed", "0"],
        ["2", "bad", "1", "failed", "9"],
        ["2", "bad", "2", "failed", "9"],
        ["3", "shot", "1", "killed", "137"],
    ] == [[*row[:4], row[-1]] for row in rows[1:]]
    assert all(float(row[4]) > 0 for row in rows[1:])
    assert [str(each["memory_peak_bytes"]) for each in finished.results("told")] == [row[5] for row in rows[1:]]


def test_the_table_has_the_same_columns(finished: Place) -> None:
    heading, *rows = finished.call("results").stdout.splitlines()
    assert [without_unit(name) for name in FIELDS] == heading.split()
    assert 4 == len([row for row in rows if row.split()[:1] and row.split()[0].isdigit()])


def test_json_has_numbers_in_base_units_and_only_what_was_measured(finished: Place) -> None:
    good = finished.result("good")
    assert (1, 1, "completed", 0) == (good["job_id"], good["attempt"], good["status"], good["return_code"])
    assert good["memory_peak_bytes"] > 4096
    assert isinstance(good["wall_seconds"], float)
    assert None not in good.values()
    assert "signal" not in good
    assert 9 == finished.result("shot")["signal"]


def test_runs_are_kept_apart(finished: Place) -> None:
    assert 1 == finished.run(SPEC.replace("retry: {times: 1, on: [9]}", "retry: {times: 0}")).returncode
    assert (3, 4) == (len(finished.results("told")), len(finished.results("told", "--run-id", "1")))
    assert (2, 1) == (
        finished.json("results", "told")["run_id"],
        finished.json("results", "told", "--run-id", "1")["run_id"],
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["told", "--run-id", "9"], "workflow told has no run 9. There are: 1."),
        (["told", "--run-id", "x"], "'x' is not a whole number"),
        (["told", "--run-id", "²"], "'²' is not a whole number"),
        (["told", "--run-id", "-1"], "'-1' is not a whole number"),
        (["tolled"], "there is no workflow 'tolled'. Did you mean 'told'?"),
    ],
)
def test_a_run_that_is_not_there_is_one_clear_line(finished: Place, words: list[str], message: str) -> None:
    done = finished.call("results", *words)
    assert (2, "") == (done.returncode, done.stdout)
    assert message in done.stderr
    assert 1 == done.stderr.count("\n"), done.stderr


def attempt(**figures: object) -> Attempt:
    job = {"job_id": 1, "step": "a", "attempt": 1}
    row = {"id": "r", "name": "a", "status": "completed", "exit_code": 0, "started": "", "workflow_job": job}
    return of_row({**row, "cpu_mean_percent": 80.0, "memory_peak_bytes": 2**30, **figures})


def test_a_lower_bound_is_marked_in_the_table_and_named_in_json() -> None:
    short = attempt(cpu_peak_percent=80.0, memory_quality="at least", cpu_quality="exact")
    assert ("≥ 80 %", "≥ 1 GiB") == (_row(short)[7], _row(short)[5])
    fields = as_json(short)
    assert ("at least", "exact", "at least") == (
        fields["cpu_peak_quality"], fields["cpu_quality"], fields["memory_quality"],
    )  # fmt: skip


def test_a_peak_that_was_seen_is_not_marked() -> None:
    long = attempt(cpu_peak_percent=95.0, memory_quality="exact", cpu_quality="exact")
    assert ("95 %", "1 GiB") == (_row(long)[7], _row(long)[5])
    assert "cpu_peak_quality" not in as_json(long)
