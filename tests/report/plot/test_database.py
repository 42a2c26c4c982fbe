"""Curves of a portable database, also of one that another program wrote."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from jobmeter.cli.main import main
from jobmeter.errors import UsageError
from jobmeter.report.plot.database import curves_of_database, is_database
from tests.runs import keep, record, windows

SAMPLES = "CREATE TABLE job_resource_samples (job_id, timestamp, cpu_percent, memory_bytes, num_processes)"


def exported(folder: Path) -> str:
    run = record(
        "aaaa", name="fit", wall_seconds=10.0, labels={"team": "a"}, requirement={"cpus": 2, "memory_bytes": 9}
    )
    keep(str(folder / "store"), run, record("bbbb", name="sum"), cells=windows(10))
    path = str(folder / "runs.db")
    assert 0 == main(["export", "--store", str(folder / "store"), "-o", path])
    return path


def made(folder: Path, *statements: str) -> str:
    path = str(folder / "other.db")
    with contextlib.closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


def test_what_export_wrote_is_drawn_as_the_runs_are(tmp_path: Path) -> None:
    fit, total = curves_of_database(exported(tmp_path))
    assert ("fit", "sum", {"team": "a"}) == (fit.row["name"], total.row["name"], fit.row["labels"])
    assert [("CPU", 200.0), ("Memory", 9.0), ("Processes", None)] == [
        (each.title, each.requested) for each in fit.panels
    ]
    memory = fit.panels[1].curve
    assert (10.0, 100 * 2**20) == (memory.times[-1], memory.peak[-1])


def test_jobs_are_chosen_by_their_number(tmp_path: Path) -> None:
    path = exported(tmp_path)
    assert ["sum"] == [each.row["name"] for each in curves_of_database(path, ["2"])]
    with pytest.raises(UsageError, match=r"has no job 3 with samples\. It has: 1, 2"):
        curves_of_database(path, ["3"])


def test_samples_of_another_program_will_do(tmp_path: Path) -> None:
    path = made(
        tmp_path,
        SAMPLES,
        "INSERT INTO job_resource_samples VALUES (4, 1714557600, 50.0, 1000, 1), (4, 1714557610, 90.0, 'much', 2)",
        "CREATE TABLE job_metadata (job_id, job_name, labels, wall_seconds)",
        "INSERT INTO job_metadata VALUES (4, 'fit', 'not JSON', 'long')",
    )
    (job,) = curves_of_database(path)
    assert ("fit", 10.0, "2024-05-01T10:00:00.000Z") == (job.row["name"], job.row["wall_seconds"], job.row["started"])
    assert [90.0] == [panel.curve.highest for panel in job.panels if panel.title == "CPU"]
    assert 0 == main(["plot", path, "-o", str(tmp_path / "page")])


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["CREATE TABLE runs (id)"], "has no table job_resource_samples"),
        ([SAMPLES], "nothing to plot: it has no samples"),
        ([SAMPLES, "INSERT INTO job_resource_samples VALUES (1, 'soon', 1, 1, 1)"], "'soon' .* is not a time"),
    ],
)
def test_a_database_without_samples_is_refused(tmp_path: Path, statements: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        curves_of_database(made(tmp_path, *statements))


def test_a_damaged_one_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "torn.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
    assert is_database(str(path))
    assert 2 == main(["plot", str(path), "-o", str(tmp_path / "page")])
    assert 1 == len(capfd.readouterr().err.splitlines())


def test_filters_of_the_store_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["plot", exported(tmp_path), "--name", "fit", "-o", str(tmp_path)])
    assert "of a database, jobs are chosen with --job-ids" in capfd.readouterr().err
