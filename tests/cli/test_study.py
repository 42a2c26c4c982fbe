"""`jobmeter study` and `jobmeter metric`, with jobs that really report metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import jobmeter
from tests.waiting import LONG
from tests.workflow.live import ON_EVERY_ENGINE, Place

METRIC = f"{sys.executable} -m jobmeter metric"
SWEEP = f"""
name: sweep
jobs:
  - name: "t{{n}}"
    command: "{METRIC} loss 1.{{n}} && {METRIC} loss -0.{{n}} size {{n}}"
    parameters: {{n: "1:4"}}
  - {{name: broken, command: "exit 3"}}
"""


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, engine=getattr(request, "param", "local"))


def call(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    settings = {**place.environment(), "JOBMETER_STORE": str(place.store)}
    return subprocess.run(
        [sys.executable, "-m", "jobmeter", *words],
        cwd=place.folder, env=settings, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip


def study(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    return call(place, "study", *words)


def summary(place: Place, *words: str) -> Any:
    done = study(place, "summary", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@ON_EVERY_ENGINE
def test_jobs_of_a_sweep_are_ranked_by_what_they_report(place: Place) -> None:
    place.run(SWEEP, "--quiet")
    answer = summary(place, "sweep", "--metric", "loss")
    names = {trial["id"]: trial["name"] for trial in answer["trials"]}
    assert ["t4", "t3", "t2", "t1"] == [names[each["id"]] for each in answer["ranking"]]
    assert [-0.4, -0.3, -0.2, -0.1] == [each["value"] for each in answer["ranking"]]
    assert (5, 4, 1) == (len(answer["trials"]), answer["completed"]["trials"], answer["failures"]["failed"]["trials"])
    assert all(trial["cpu_seconds"] > 0 and trial["memory_peak_bytes"] > 0 for trial in answer["trials"])
    best = summary(place, "sweep", "--metric", "size", "--maximize")["ranking"][0]
    assert ("t4", 4) == (names[best["id"]], best["value"])


def test_the_record_has_the_curve_and_the_store_can_be_queried_for_the_last_value(place: Place) -> None:
    place.run(SWEEP, "--quiet")
    record = json.loads(call(place, "show", "t2", "--json").stdout)
    assert [1.2, -0.2] == record["metrics"]["loss"]["values"]
    listed = call(place, "ls", "--json", "--where", "metrics.loss < -0.25")
    assert ["t3", "t4"] == sorted(run["name"] for run in json.loads(listed.stdout))
    assert {"loss": -0.3, "size": 3} == next(run["metrics"] for run in json.loads(listed.stdout) if run["name"] == "t3")


def test_a_file_of_metrics_in_the_jobs_own_directory_counts(place: Place) -> None:
    (place.folder / "own").mkdir()
    place.run(
        """
        name: w
        jobs:
        - {name: a, cwd: own, command: "echo '{\\"loss\\": 0.5}' >metrics.json"}
        - {name: b, command: "true"}
        """
    )
    assert [0.5] == [each["value"] for each in summary(place)["ranking"]]


def test_a_single_job_names_its_file(place: Place) -> None:
    for loss in (3, 2):
        script = f"echo '{{\"loss\": {loss}}}' >out.json"
        call(place, "run", "--quiet", "--metrics", "out.json", "--label", "study=x", "--", "sh", "-c", script)
    assert [2, 3] == [each["value"] for each in summary(place, "label.study=x")["ranking"]]


def test_the_page_shows_every_trial_and_the_front(place: Place) -> None:
    place.run(SWEEP, "--quiet")
    done = study(place, "summary", "--plot", "study.html", "--metric", "loss")
    assert (0, "jobmeter: written: study.html") == (done.returncode, done.stderr.strip())
    page = (place.folder / "study.html").read_text()
    assert 4 == page.count("<circle")
    assert 1 == page.count("<polyline")
    assert "Best by loss (less is better):" in done.stdout
    assert "1 trial did not complete" in done.stdout


@pytest.mark.parametrize(
    "metrics", [None, 5, [], {"loss": None}, {"loss": {}}, {"loss": {"value": "x"}}, {"loss": {"value": 10**400}}]
)
@pytest.mark.no_records
def test_a_record_with_bad_metrics_is_named_and_hides_no_other(place: Place, metrics: object) -> None:
    script = """echo '{"loss": 2}' >out.json"""
    call(place, "run", "--quiet", "--metrics", "out.json", "--label", "study=x", "--", "sh", "-c", script)
    (healthy,) = (place.store / "journal").iterdir()
    run_id = healthy.stem
    *lines, record = healthy.read_text().replace(run_id, "bad").splitlines()
    changed = json.loads(record)
    changed["record"]["metrics"] = metrics
    text = "\n".join([*lines, json.dumps(changed, separators=(",", ":"))])
    (place.store / "journal" / "bad.jsonl").write_text(f"{text}\n")
    listed = call(place, "ls", "--json")
    statuses = {run["id"]: run["status"] for run in json.loads(listed.stdout)}
    assert {run_id: "completed", "bad": "lost"} == statuses  # its header is all that is known of it
    assert "bad.jsonl: line" in listed.stderr
    assert [2] == [each["value"] for each in summary(place, "label.study=x")["ranking"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["summry"], "there is no command 'study summry'. Did you mean 'summary'?"),
        (["summary", "sweep", "--metric", "los"], "--metric: no trial reported 'los'. Did you mean 'loss'?"),
        (["summary", "other"], "other"),
        (["summary", "sweep", "label.a=b"], "name a workflow, or labels"),
        (["summary", "label.a=b"], "label.a=b: no run of it has ended"),
        (["summary", "--plot", "x.png", "--metric", "loss"], "--plot: x.png: it is a page"),
    ],
)
def test_bad_input_is_refused_in_one_line(place: Place, words: list[str], message: str) -> None:
    place.run(SWEEP, "--quiet")
    done = study(place, *words)
    assert (2, "") == (done.returncode, done.stdout)
    assert message in done.stderr
    assert 1 == len(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["loss"], "'loss' has no value"),
        (["loss", "small"], "loss: 'small' is not a number"),
        (["loss", "nan"], "loss: 'nan' is not a number"),
        (["loss", "1"], "this is no job of a workflow: JOBMETER_METRICS is not set"),
    ],
)
def test_a_metric_that_cannot_be_reported_is_refused(words: list[str], message: str) -> None:
    assert "JOBMETER_METRICS" not in os.environ
    done = jobmeter("metric", *words)
    assert 2 == done.returncode
    assert message in done.stderr
