from __future__ import annotations

import signal

from tests.workflow.live import Place, kill


def test_each_workflow_is_listed_with_its_newest_run_and_all_runs_on_request(place: Place) -> None:
    place.run("name: One\njobs: [{name: a, command: 'false'}]")
    place.run("name: One\njobs: [{name: a, command: 'true'}]")
    place.run("name: Other\njobs: [{name: a, command: 'exit 1'}, {name: b, command: 'true'}]")
    entries = place.json("list")
    assert [("other", 1, "failed", 1, 2), ("one", 2, "completed", 1, 1)] == [
        (each["workflow_id"], each["run_id"], each["state"], each["completed"], each["jobs"]) for each in entries
    ]
    assert "One" == entries[1]["name"]
    assert str(place.folder / "spec.yaml") == entries[0]["spec"]
    assert [("other", 1), ("one", 2), ("one", 1)] == [
        (each["workflow_id"], each["run_id"]) for each in place.json("list", "--all")
    ]
    shown = place.call("list").stdout.splitlines()
    assert ["workflow_id", "run_id", "state", "started", "completed", "spec"] == shown[0].split()
    assert 3 == len(shown)


def test_one_that_is_being_run_says_so(place: Place) -> None:
    runner = place.start_run("name: busy\njobs: [{name: a, command: 'echo $$ >pid; exec sleep 60'}]")
    place.await_running("pid")
    assert "running" == place.json("list")[0]["state"]
    kill(runner, signal.SIGTERM)
    assert "stopped" == place.json("list")[0]["state"]


def test_that_nothing_was_run_yet_is_reported(place: Place) -> None:
    assert [] == place.json("list")
    assert "no workflow was run yet" in place.call("list").stderr


def test_a_workflow_whose_plan_is_damaged_is_reported_and_the_others_are_listed(place: Place) -> None:
    place.run("name: whole\njobs: [{name: a, command: 'true'}]")
    place.run("name: broken\njobs: [{name: a, command: 'true'}]")
    (place.store / "workflows/broken/1/plan.json").write_text("{")
    done = place.call("list")
    assert "plan.json: damaged" in done.stderr
    assert "whole" in done.stdout
