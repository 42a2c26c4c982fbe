from __future__ import annotations

from pathlib import Path

from tests.running import NOBODY, workplace
from tests.workflow.live import ON_BOTH_ENGINES, Place, kill, running_in

SPEC = (
    "name: busy\njobs: [{name: a, command: 'echo $$ >pid; exec sleep 60'}, {name: b, command: 'true', blocked_by: [a]}]"
)


@ON_BOTH_ENGINES
def test_the_runner_and_its_jobs_end_and_it_can_be_resumed(place: Place) -> None:
    runner = place.start_run(SPEC)
    place.await_running("pid")
    done = place.call("cancel", "busy")
    assert 0 == done.returncode
    assert "workflow busy (run 1) was cancelled; `workflow resume` runs what is left" in done.stderr
    assert [] == running_in(place.folder)
    runner.communicate()
    assert 143 == runner.returncode
    assert {"a": "cancelled", "b": "waiting"} == place.statuses()
    place.write(SPEC.replace("exec sleep 60", "true"))
    assert 0 == place.call("resume", "busy").returncode
    assert {"a": "completed", "b": "completed"} == place.statuses()


def test_cancelling_a_workflow_that_is_not_being_run_is_an_error(place: Place) -> None:
    place.run("name: idle\njobs: [{name: a, command: 'true'}]")
    done = place.call("cancel", "idle")
    assert 2 == done.returncode
    assert "jobmeter: workflow idle (run 1) is not being run\n" == done.stderr


def test_one_whose_runner_was_killed_is_not_being_run(place: Place) -> None:
    runner = place.start_run(SPEC)
    place.await_running("pid")
    kill(runner)
    assert "is not being run" in place.call("cancel").stderr


def test_another_user_s_cannot_be_cancelled() -> None:
    folder = Path(workplace())
    mine, theirs = Place(folder), Place(folder, NOBODY)
    runner = mine.start_run(SPEC)
    mine.await_running("pid")
    for path in (mine.store, *mine.store.rglob("*")):  # as a store was before new ones were private
        path.chmod(0o755)
    done = theirs.call("cancel", "busy")
    assert 2 == done.returncode
    assert f"process {runner.pid}, which runs busy, belongs to another user" in done.stderr
    assert 0 == mine.call("cancel", "busy").returncode
    runner.communicate()
