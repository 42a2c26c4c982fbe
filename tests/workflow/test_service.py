"""The one way to run a workflow: what the command does, the Python API does as well."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

import jobmeter
from jobmeter.cli.main import main
from jobmeter.errors import LaunchError, UsageError
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.service import WorkflowOptions, claim, execute, is_done, prepare_resume, prepare_run
from jobmeter.workflow.task_log import unended_tasks
from tests.workflow.live import ON_BOTH_ENGINES, Place, lives

PLOTTED = """
name: drawn
resource_monitor: {generate_plots: true, sample_interval_seconds: 0.05}
jobs: [{name: a, command: sleep 0.5}]
"""


@pytest.mark.parametrize("way", ["command", "api"])
def test_plots_that_the_spec_requests_are_drawn_whoever_runs_it(place: Place, way: str) -> None:
    if way == "command":
        assert 0 == place.run(PLOTTED).returncode
    else:
        assert jobmeter.run_workflow(place.write(PLOTTED), store=str(place.store)).succeeded
    assert "<html" in (place.store / "workflows/drawn/1/plots.html").read_text()


@pytest.mark.parametrize("way", ["command", "api"])
def test_a_time_series_is_left_as_a_database_that_plot_opens(place: Place, way: str) -> None:
    spec = """
name: sampled
resource_monitor: {granularity: time_series, sample_interval_seconds: 0.05}
jobs: [{name: a, command: sleep 0.5}, {name: b, command: sleep 0.5, blocked_by: [a]}]
"""
    path = place.store / "workflows/sampled/1/resources.db"
    if way == "command":
        done = place.run(spec)
        assert (0, True) == (done.returncode, f"samples: {path}" in done.stderr)
    else:
        assert jobmeter.run_workflow(place.write(spec), store=str(place.store)).succeeded
    with contextlib.closing(sqlite3.connect(path)) as database:
        for number, name in ((1, "a"), (2, "b")):
            names = database.execute("SELECT job_name FROM job_resource_samples WHERE job_id = ?", (number,)).fetchall()
            assert {(name,)} == set(names)
    page = path.with_name("page")
    assert 0 == main(["plot", str(path), "--job-ids", "2", "-o", str(page)])
    assert "<html" in next(page.iterdir()).read_text()


def test_no_plots_are_tried_of_what_is_not_measured(place: Place) -> None:
    spec = PLOTTED.replace("{generate_plots", "{enabled: false, generate_plots")
    done = place.run(spec)
    assert (0, False) == (done.returncode, "no plots" in done.stderr)


def test_a_name_that_another_spec_has_is_a_warning_of_both(place: Place) -> None:
    spec = "name: same\njobs: [{name: a, command: 'true'}]"
    assert 0 == place.run(spec).returncode
    other = place.write(spec, "other.yaml")
    with pytest.warns(UserWarning, match="the last run of workflow same was of"):
        jobmeter.run_workflow(other, store=str(place.store))
    assert "the last run of workflow same was of" in place.run(spec).stderr


@pytest.mark.parametrize("plan", ['{"schema"', "[]", '{"schema": "jobmeter.workflow/99"}'])
def test_a_plan_of_the_last_run_that_cannot_be_read_is_a_warning_and_a_new_run_starts(place: Place, plan: str) -> None:
    spec, options = str(place.write("name: b\njobs: [{name: a, command: 'true'}]")), WorkflowOptions(str(place.store))
    assert execute(claim(prepare_run(spec, options))).succeeded
    path = place.store / "workflows/b/1/plan.json"
    path.write_text(plan)
    warnings: list[str] = []
    assert execute(claim(prepare_run(spec, options, warnings.append))).succeeded
    (warning,) = warnings
    assert warning.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"cpus": 0}, "--cpus: 0 is not"),
        ({"cpus": -1.0}, "--cpus"),
        ({"memory": 0}, "memory: "),
        ({"gpus": -1}, "--gpus"),
    ],
)
def test_bounds_that_mean_nothing_are_refused_and_nothing_is_written(
    place: Place, bounds: dict[str, int], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        jobmeter.run_workflow(place.write("jobs: [{name: a, command: 'true'}]"), store=str(place.store), **bounds)  # type: ignore[arg-type]
    assert not place.store.exists()


def test_a_job_that_requests_nothing_runs_also_on_half_a_cpu(place: Place) -> None:
    spec = place.write("jobs: [{name: a, command: 'true'}]")
    assert jobmeter.run_workflow(spec, store=str(place.store), cpus=0.5).succeeded


def test_the_api_takes_an_engine_with_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, engine="pipe")
    monkeypatch.syspath_prepend(str(place.packages))
    spec = place.write("name: over pipes\njobs: [{name: a, command: echo hello}]")
    store = str(place.store)
    assert jobmeter.run_workflow(spec, store=store, engine="pipe", engine_options={"workers": "1"}).succeeded
    assert "hello\n" == place.log("a")
    assert "pipe" == RunDirectory(store, "over-pipes", 1).plan()["engine"]
    with pytest.raises(UsageError, match="Did you mean 'pipe'"):
        jobmeter.run_workflow(spec, store=store, engine="pype")


def test_a_run_that_breaks_does_not_stay_claimed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, options = str(place.write("name: b\njobs: [{name: a, command: 'true'}]")), WorkflowOptions(str(place.store))
    prepared = claim(prepare_run(spec, options))
    with pytest.raises(ArithmeticError):
        execute(prepared, run=lambda run: 1 // 0)  # type: ignore[arg-type,return-value]
    assert prepared.directory is not None
    assert not prepared.directory.is_being_run()
    resumed = prepare_resume("b", None, options)
    assert {1: "not run yet"} == resumed.reasons
    assert execute(resumed).succeeded
    again = prepare_resume("b", None, options)
    assert is_done(again)
    assert execute(again).succeeded
    assert not prepared.directory.is_being_run()


@ON_BOTH_ENGINES
def test_a_run_is_resumed_on_the_engine_it_was_run_on(place: Place) -> None:
    spec = "name: again\njobs: [{name: a, command: '[ -e mended ]'}]"
    assert 1 == place.run(spec).returncode
    (place.folder / "mended").touch()
    assert 0 == place.call("resume", "again").returncode
    assert place.engine == RunDirectory(str(place.store), "again", 1).plan()["engine"]


def test_what_was_left_on_another_engine_is_ended_by_that_engine_with_its_options(tmp_path: Path) -> None:
    place = Place(tmp_path, engine="pipe")
    spec = "name: moved\njobs: [{name: a, command: 'echo $$ >>pids; [ -e mended ] || exec sleep 60'}]"
    runner = place.start_run(spec, "--room", "north")
    place.await_lines("pids", 1)
    runner.kill()
    runner.communicate()
    (place.folder / "mended").touch()
    aside = shutil.move(place.packages, tmp_path / "aside")
    done = place.call("resume", "moved", "--engine", "local")
    assert LaunchError.exit_code == done.returncode
    assert "jobmeter: jobs of a killed runner may still run on engine pipe: " in done.stderr
    # A resume that failed changes nothing: without `--engine`, the next one is on the engine of the run.
    stored = RunDirectory(str(place.store), "moved", 1).plan()
    assert ("pipe", {"room": "north"}) == (stored["engine"], stored["engine_options"])
    shutil.move(aside, place.packages)
    done = place.call("resume", "moved", "--engine", "local")
    assert 0 == done.returncode, done.stderr
    assert "ended what was left of 1 job whose runner was killed" in done.stderr
    assert not lives(int(place.lines("pids")[0]))


def test_engine_options_are_stored_with_each_task_unless_they_hold_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, engine="pipe")
    monkeypatch.syspath_prepend(str(place.packages))
    spec, store = place.write("name: kept\njobs: [{name: a, command: 'true'}]"), str(place.store)
    options = {"workers": "1", "room": "amqp://me:hunter2@there"}
    assert jobmeter.run_workflow(spec, store=store, engine="pipe", engine_options=options).succeeded
    path = RunDirectory(store, "kept", 1).tasks
    (task,) = unended_tasks(path, ())
    assert {"workers": "1"} == task.engine_options
    line = json.loads(Path(path).read_text())
    for damaged in ("text", [1], 5, None):
        Path(path).write_text(json.dumps({**line, "engine_options": damaged}) + "\n")
        assert [] == unended_tasks(path, ())
