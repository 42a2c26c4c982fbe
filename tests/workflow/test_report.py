"""The report of a workflow: what it says, from a plan and runs whose figures are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobmeter.cli.main import main
from jobmeter.report.workflow.job_entry import JobEntry
from jobmeter.workflow.directory import RunDirectory, new_run
from jobmeter.workflow.history import stored_run
from jobmeter.workflow.report import Written, draw_report, workflow_report
from tests.report.workflow.stored import GIB, attempt, demo, entry, store_workflow
from tests.runs import keep, windows, workflow_run


def jobs_of(store: Path) -> dict[int, JobEntry]:
    return {job.number: job for job in workflow_report(stored_run(str(store), "demo", None, pytest.fail)).jobs}


def test_the_critical_path_is_marked_and_in_words(tmp_path: Path) -> None:
    demo(str(tmp_path))
    report = workflow_report(stored_run(str(tmp_path), "demo", None, pytest.fail))
    assert [1, 2] == [job.number for job in report.jobs if job.critical]
    assert report.critical.startswith("prepare (10 s) → train_2")
    assert report.critical.endswith("50 s together")
    assert 50.0 == report.seconds


def test_tiles_have_the_totals_of_every_attempt(tmp_path: Path) -> None:
    demo(str(tmp_path))
    figures = dict(workflow_report(stored_run(str(tmp_path), "demo", None, pytest.fail)).figures)
    assert "3 of 6 completed" == figures["jobs"]
    assert ("1", "1", "1") == (figures["failures"], figures["retries"], figures["over their request"])
    # 80 s of jobs, at 1.5 cores of the 2 requested
    assert ("120 of 160", "75 %") == (figures["core-seconds"], figures["CPU efficiency"])


def test_runs_of_recovery_scripts_are_no_retries(tmp_path: Path) -> None:
    runs = [
        attempt(1, 0.0, 5.0, 0.2, status="failed"),
        attempt(2, 5.0, 1.0, 0.1, name="a.recovery", step="a.recovery"),
        attempt(1, 6.0, 5.0, 0.2, attempt=2),
    ]
    store_workflow(str(tmp_path), [entry(1, "a")], runs)
    assert "1" == dict(workflow_report(stored_run(str(tmp_path), "demo", None, pytest.fail)).figures)["retries"]


def test_jobs_have_what_they_requested_and_used_and_over_use_is_marked(tmp_path: Path) -> None:
    demo(str(tmp_path))
    jobs = jobs_of(tmp_path)
    assert (float(GIB), 1.5 * GIB, "50 % more than requested") == (
        jobs[3].memory.requested,
        jobs[3].memory.used,
        jobs[3].memory.over,
    )
    assert ("", 200.0, 180.0) == (jobs[2].memory.over, jobs[2].cpu.requested, jobs[2].cpu.used)
    assert (2, "failed", "blocked") == (len(jobs[4].attempts), jobs[4].status, jobs[6].status)


def test_the_load_is_what_jobs_that_ran_at_one_time_requested_and_used(tmp_path: Path) -> None:
    jobs = [entry(1, "a"), entry(2, "b")]
    store_workflow(str(tmp_path), jobs, [attempt(1, 0.0, 20.0, 0.5), attempt(2, 10.0, 20.0, 0.25)])
    cpu, memory = workflow_report(stored_run(str(tmp_path), "demo", None, pytest.fail)).loads
    assert ([10.0, 20.0, 30.0], [150.0, 300.0, 150.0], [200.0, 400.0, 200.0], 400.0) == cpu[2:]
    assert [0.5 * GIB, 0.75 * GIB, 0.25 * GIB] == memory.used


def test_plot_writes_the_report_of_a_workflow(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    demo(str(tmp_path / "store"))
    assert 0 == main(["plot", "--store", str(tmp_path / "store"), "Demo", "-o", str(tmp_path)])
    assert f"{tmp_path}/jobmeter-demo-1.html\n" == capfd.readouterr().out
    page = (tmp_path / "jobmeter-demo-1.html").read_text()
    for words in ("Timeline", "Critical path", "Load", "Graph", "Jobs", "core-seconds", "./prepare --seed 1"):
        assert words in page
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert ["run00011", "run00021", "run00031", "run00041", "run00042", "the workflow"] == [
        r["id"] for r in data["runs"]
    ]


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_pictures_of_a_workflow_are_those_of_its_jobs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    demo(str(tmp_path / "store"))
    words = ["plot", "--store", str(tmp_path / "store"), "demo", "--format", form, "-o", str(tmp_path), "--prefix", "p"]
    assert 0 == main(words)
    written = capfd.readouterr().out.split()
    assert (f"{tmp_path}/p.pdf" in written) == (form == "pdf")
    assert (f"{tmp_path}/p-run00011.svg" in written) == (form == "svg")


def test_an_older_run_of_a_workflow_can_be_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    demo(str(tmp_path / "store"))
    assert 0 == main(
        ["plot", "--store", str(tmp_path / "store"), "demo", "--run-id", "1", "-o", str(tmp_path / "x.html")]
    )
    assert 2 == main(["plot", "--store", str(tmp_path / "store"), "demo", "--run-id", "7"])
    assert "--run-id: 'demo' has no run 7" in capfd.readouterr().err


# --- what `generate_plots` leaves ---


def page_of(directory: RunDirectory) -> Path:
    return Path(directory.path, "plots.html")


def test_the_report_is_beside_the_logs(tmp_path: Path) -> None:
    directory = demo(str(tmp_path))
    runs = ["run00011", "run00021", "run00031", "run00041", "run00042"]
    assert Written(str(page_of(directory)), 6, 5) == draw_report(directory, str(tmp_path), runs, pytest.fail)
    assert "<html" in page_of(directory).read_text()


def test_runs_of_another_time_are_not_on_the_page(tmp_path: Path) -> None:
    directory = demo(str(tmp_path))
    draw_report(directory, str(tmp_path), ["run00021"], pytest.fail)
    assert "run00011" not in page_of(directory).read_text()


def warnings_of(directory: RunDirectory, store: Path, *runs: str) -> list[str]:
    """What is reported when no page can be drawn."""
    warnings: list[str] = []
    assert draw_report(directory, str(store), runs, warnings.append) is None
    return warnings


def test_jobs_without_curves_are_in_the_report_which_says_how_to_have_them(tmp_path: Path) -> None:
    directory = store_workflow(str(tmp_path), [entry(1, "a")], [attempt(1, 0.0, 1.0, 0.1)], curves=False)
    assert Written(str(page_of(directory)), 1, 0) == draw_report(directory, str(tmp_path), ["run00011"], pytest.fail)
    assert "granularity: time_series" in page_of(directory).read_text()


def test_no_jobs_are_no_report(tmp_path: Path) -> None:
    directory = demo(str(tmp_path))
    assert ["no plots: no job was run"] == warnings_of(directory, tmp_path)


def test_a_plan_that_is_gone_is_one_line(tmp_path: Path) -> None:
    directory = new_run(str(tmp_path), "Demo")
    keep(str(tmp_path), workflow_run("run1", 1), cells=windows())
    (warning,) = warnings_of(directory, tmp_path, "run1")
    assert "plan.json: No such file or directory" in warning


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    directory = demo(str(tmp_path))
    page_of(directory).mkdir()
    assert [f"no plots: {page_of(directory)}: Is a directory"] == warnings_of(directory, tmp_path, "run00011")
