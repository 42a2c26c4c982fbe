from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobmeter.workflow.directory import RunDirectory, new_run
from jobmeter.workflow.plots import Plots, draw_plots
from tests.runs import keep, record, windows


def job(number: int, seconds: float = 10.0) -> dict[str, Any]:
    run = record(f"run{number:04}", f"job{number}", cpu_seconds=seconds, wall_seconds=10.0)
    workflow = {"id": "demo", "name": "Demo", "run_id": 1, "job_id": number, "step": "job", "attempt": 1}
    return {"workflow": workflow, **run}


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return new_run(str(tmp_path), "Demo")


def page_of(directory: RunDirectory) -> Path:
    return Path(directory.path, "plots.html")


def test_the_jobs_are_drawn_on_one_page(directory: RunDirectory, tmp_path: Path) -> None:
    keep(str(tmp_path), job(1), job(2), cells=windows())
    plots = draw_plots(directory, str(tmp_path), ["run0001", "run0002"], pytest.fail)
    assert Plots(str(page_of(directory)), 2, 2) == plots
    assert "CPU of all runs" in page_of(directory).read_text()


def test_of_many_jobs_the_costliest_are_drawn(directory: RunDirectory, tmp_path: Path) -> None:
    jobs = [job(number, seconds=float(number)) for number in range(1, 61)]
    keep(str(tmp_path), *jobs, cells=windows(2))
    plots = draw_plots(directory, str(tmp_path), [each["id"] for each in jobs], pytest.fail)
    assert Plots(str(page_of(directory)), 50, 60) == plots
    page = page_of(directory).read_text()
    assert 'id="run0011"' in page
    assert 'id="run0010"' not in page


def test_runs_of_another_time_are_not_on_the_page(directory: RunDirectory, tmp_path: Path) -> None:
    keep(str(tmp_path), job(1), job(2), cells=windows())
    draw_plots(directory, str(tmp_path), ["run0002"], pytest.fail)
    assert "run0001" not in page_of(directory).read_text()


def warnings_of(directory: RunDirectory, store: Path, *runs: str) -> list[str]:
    """What is reported when no page can be drawn."""
    warnings: list[str] = []
    assert draw_plots(directory, str(store), runs, warnings.append) is None
    return warnings


def test_jobs_too_short_for_a_curve_are_no_plots(directory: RunDirectory, tmp_path: Path) -> None:
    keep(str(tmp_path), job(1))
    assert ["no plots: nothing to plot: no time series is stored for run0001"] == warnings_of(
        directory, tmp_path, "run0001"
    )


def test_no_jobs_are_no_plots(directory: RunDirectory, tmp_path: Path) -> None:
    keep(str(tmp_path), job(1))
    assert ["no plots: no job was run"] == warnings_of(directory, tmp_path)


def test_a_page_that_cannot_be_written_is_one_line(directory: RunDirectory, tmp_path: Path) -> None:
    keep(str(tmp_path), job(1), cells=windows())
    page_of(directory).mkdir()
    assert [f"no plots: {page_of(directory)}: Is a directory"] == warnings_of(directory, tmp_path, "run0001")
