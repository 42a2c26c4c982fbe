"""`workflow run --monitor`: what the cluster did meanwhile, in the summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.records import violations_of_schema
from tests.waiting import wait_for
from tests.workflow.live import Place, kill, running_in

SPEC = """
name: watched
jobs:
  - name: one
    command: sleep 3
    resource_requirements: {num_cpus: 1, memory: 64m}
  - name: two
    command: sleep 3
    resource_requirements: {num_cpus: 1, memory: 64m}
"""


def report_of(place: Place) -> tuple[Any, Path]:
    (path,) = Path(place.store).glob("workflows/watched/*/cluster.json")
    return json.loads(path.read_text()), path


def test_the_summary_has_what_was_reserved_and_used(place: Place) -> None:
    done = place.run(SPEC, "--monitor")
    assert 0 == done.returncode, done.stderr
    report, path = report_of(place)
    assert [] == violations_of_schema("cluster", report)
    assert 2.0 == report["cluster"]["reserved_cpus"]["peak"]
    assert {"one", "two"} == {task["name"] for task in report["tasks"]}
    assert path.with_suffix(".html").read_text().startswith("<!DOCTYPE html>")
    summary, _, section = done.stderr.partition(": 1 node, watched for ")
    assert "workflow watched completed" in summary
    assert f"  page       {path.with_suffix('.html')}\n" in section
    assert "cpus_reserved" in section


def test_without_it_nothing_is_watched(place: Place) -> None:
    done = place.run(SPEC.replace("sleep 3", "true"))
    assert "watched for" not in done.stderr
    assert [] == list(Path(place.store).glob("workflows/watched/*/cluster.*"))


def test_the_monitor_ends_with_a_runner_that_is_killed(place: Place) -> None:
    runner = place.start_run(SPEC.replace("sleep 3", "sleep 1000"), "--monitor")
    wait_for(lambda: len([line for line in running_in(place.folder) if "sleep 1000" in line]) > 1, "the jobs run")
    assert any("jobmeter cluster" in line for line in running_in(place.folder))
    kill(runner)
    wait_for(lambda: not running_in(place.folder), "nothing runs any more")


def test_an_engine_without_a_cluster_is_refused_before_anything_starts(place: Place) -> None:
    done = place.run(SPEC, "--monitor", "--engine", "celery", "--broker", "redis://127.0.0.1:1")
    assert (2, "jobmeter: --monitor: engine celery has no cluster that can be watched. With: local, ray\n") == (
        done.returncode, done.stderr,
    )  # fmt: skip
    assert [] == list(Path(place.store).glob("workflows/*"))
