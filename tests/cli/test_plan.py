"""`jobmeter plan`: what it forecasts, of workflows that then really run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobmeter.times import parse_moment
from tests.waiting import LONG
from tests.workflow.live import Place

SPEC = """
name: planned
resource_requirements: [{name: one, num_cpus: 1, memory: 100m}]
jobs:
  - {name: prep, command: sleep 0.8, resource_requirements: one}
  - {name: "t{n}", command: "sleep {n}.{n}", parameters: {n: "0:2"}, resource_requirements: one, blocked_by: [prep]}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def plan(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jobmeter", "plan", "--store", str(place.store), *words],
        cwd=place.folder, env=place.environment(), capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip


def planned(place: Place, *words: str) -> Any:
    done = plan(place, "--json", *words)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_the_time_of_sixty_jobs_is_forecast_within_15_percent(place: Place) -> None:
    """Jobs that sleep: more at a time than there are CPUs does not make them slower."""
    jobs = "\n".join(
        f"  - {{name: s{number}, command: sleep 0.{number % 7 + 3}, resource_requirements: r{number % 3 + 1}, "
        f"blocked_by: [{'' if number < 20 else f's{number - 20}'}]}}"
        for number in range(60)
    )
    requests = ", ".join(f"{{name: r{cpus}, num_cpus: {cpus}, memory: 10m}}" for cpus in (1, 2, 3))
    spec = place.write(f"name: sixty\nresource_requirements: [{requests}]\njobs:\n{jobs}\n")
    for _ in range(2):
        done = place.call("run", "--cpus", "6", str(spec), "--quiet")
        assert done.returncode == 0, done.stderr
    forecast = planned(place, str(spec), "--cpus-per-node", "6")
    assert (60, 120) == (forecast["jobs"], forecast["runs"])
    walls = []
    for _ in range(3):
        place.call("run", "--cpus", "6", str(spec), "--quiet")
        results = place.results("sixty")
        began = [parse_moment(result["started"]).timestamp() for result in results]
        walls.append(max(start + result["wall_seconds"] for start, result in zip(began, results)) - min(began))
    expected = forecast["figures"]["wall_seconds"]["expected"]
    # The best of three: what else the machine does makes a run longer, and never shorter.
    assert expected == pytest.approx(min(walls), rel=0.15)


def test_a_workflow_that_never_ran_is_refused_with_what_to_do(place: Place) -> None:
    done = plan(place, str(place.write(SPEC)))
    assert (2, "") == (done.returncode, done.stdout)
    assert "no job of this workflow has completed yet" in done.stderr
    assert "--assume 10m" in done.stderr
    assert 1 == len(done.stderr.splitlines())


def test_what_is_assumed_is_named(place: Place) -> None:
    done = plan(place, str(place.write(SPEC)), "--assume", "1h", "--cpus-per-node", "2")
    assert 0 == done.returncode
    assert "No run of prep, t0, t1, t2 has completed: the runtime of --assume is assumed." in done.stdout
    assert planned(place, "spec.yaml", "--assume", "1h", "--cpus-per-node", "2")["figures"]["wall_seconds"] == {
        "expected": 3 * 3600, "low": 3 * 3600, "high": 3 * 3600,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("budget", "fits"),
    [
        (["--max-wall", "3h"], True),
        (["--max-wall", "2h"], False),
        (["--max-core-hours", "4"], True),
        (["--max-core-hours", "3.9"], False),
        (["--max-memory", "200m"], True),
        (["--max-memory", "199m"], False),
        (["--deadline", "3h"], True),
        (["--deadline", "119m"], False),
    ],
)
def test_the_exit_code_says_whether_it_fits_the_budget(place: Place, budget: list[str], fits: bool) -> None:
    spec = str(place.write(SPEC))
    done = plan(place, spec, "--assume", "1h", "--cpus-per-node", "2", *budget)
    assert (0 if fits else 1) == done.returncode, done.stdout + done.stderr
    if not fits:
        assert ("Over budget" in done.stdout) is (budget[0] != "--deadline")


def test_the_fewest_nodes_that_meet_the_deadline_are_named(place: Place) -> None:
    spec = str(place.write(SPEC))
    forecast = planned(place, spec, "--assume", "1h", "--cpus-per-node", "1", "--trials", "8", "--deadline", "3h")
    assert (9, 4) == (forecast["jobs"], forecast["smallest_cluster"]["nodes"])
    done = plan(place, spec, "--assume", "1h", "--cpus-per-node", "1", "--deadline", "1h")
    assert 1 == done.returncode
    assert "No number of such nodes is done within 1h: see the longest chain" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.yaml"], "gone.yaml"),
        (["--nodes", "0"], "--nodes: '0' is not a whole number above 0"),
        (["--deadline", "soon"], "--deadline: 'soon' is neither a time, as 8h, nor a moment"),
        (["--deadline", "2001-01-01"], "--deadline: 2001-01-01 is over"),
        (["--max-core-hours", "-1"], "--max-core-hours"),
        (["--cpus-per-node", "0.5"], "can never start"),
        (["--engine", "local", "--nodes", "2"], "--nodes: an engine has nodes of its own"),
        (["--engine", "slurmm"], "slurmm"),
        (["--engine", "celery"], "--engine celery: jobs wait in its queue"),
    ],
)
def test_bad_input_is_refused_in_one_line(place: Place, words: list[str], message: str) -> None:
    spec = [] if words[0].endswith(".yaml") else [str(place.write(SPEC))]
    done = plan(place, *spec, *words)
    assert (2, "") == (done.returncode, done.stdout)
    assert message in done.stderr
    assert 1 == len(done.stderr.splitlines())
