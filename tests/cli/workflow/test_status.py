from __future__ import annotations

import signal

from tests.waiting import wait_for
from tests.workflow.live import Place, kill

SPEC = """
name: Half Way
jobs:
  - {name: quick, command: 'true'}
  - {name: slow, command: 'echo $$ >>pids; exec sleep 60', blocked_by: [quick]}
  - {name: later, command: 'true', blocked_by: [slow]}
"""


def test_while_it_runs_the_running_jobs_are_shown(place: Place) -> None:
    runner = place.start_run(SPEC)
    place.await_running("pids")
    status = place.json("status", "half-way")
    assert ("running", runner.pid) == (status["state"], status["runner"]["pid"])
    assert {"completed": 1, "running": 1, "waiting": 1} == status["counts"]
    assert {"quick": "completed", "slow": "running", "later": "waiting"} == place.statuses()
    shown = place.call("status").stdout
    assert f"Half Way, run 1: running (process {runner.pid} on" in shown
    assert "slow" in shown
    kill(runner, signal.SIGTERM)


def test_after_a_kill_the_jobs_that_ran_are_lost_and_it_can_be_resumed(place: Place) -> None:
    runner = place.start_run(SPEC)
    place.await_running("pids")
    kill(runner)
    status = place.json("status")
    assert "stopped" == status["state"]
    assert "runner" not in status
    assert {"quick": "completed", "slow": "lost", "later": "waiting"} == place.statuses()
    assert "`jobmeter workflow resume half-way` runs what is left." in place.call("status").stdout


def test_while_it_is_resumed_what_was_lost_waits_or_runs(place: Place) -> None:
    runner = place.start_run(SPEC)
    place.await_running("pids")
    kill(runner)
    runner = place.start("resume", "half-way")
    place.await_lines("pids", 2)
    assert {"quick": "completed", "slow": "running", "later": "waiting"} == place.statuses()
    kill(runner, signal.SIGTERM)


def test_after_a_failure_the_reasons_are_shown(place: Place) -> None:
    place.run(SPEC.replace("exec sleep 60", "exit 7"))
    jobs = {job["name"]: job for job in place.json("status")["jobs"]}
    assert ("failed", "failed with exit code 7") == (jobs["slow"]["status"], jobs["slow"]["reason"])
    assert ("blocked", "needs slow, which failed") == (jobs["later"]["status"], jobs["later"]["reason"])
    assert "needs slow, which failed" in place.call("status").stdout


def test_of_many_jobs_those_are_listed_that_one_can_do_something_about(place: Place) -> None:
    place.run("name: many\njobs:\n- {name: 'a_{i}', command: '[ {i} != 7 ]', parameters: {i: '1:50'}}\n", "--quiet")
    shown = place.call("status").stdout
    assert "a_7" in shown
    assert "a_8" not in shown
    assert "49 more jobs; --all shows them" in shown
    assert "a_8" in place.call("status", "--all").stdout


def test_that_nothing_was_run_yet_is_an_error(place: Place) -> None:
    done = place.call("status")
    assert 2 == done.returncode
    assert "jobmeter: no workflow was run yet. `jobmeter workflow run SPEC` runs one.\n" == done.stderr


def test_looking_does_not_disturb_the_runner(place: Place) -> None:
    runner = place.start_run(SPEC.replace("exec sleep 60", "until [ -e end ]; do sleep 0.02; done"))
    place.await_running("pids")
    for _ in range(3):
        assert "running" == place.json("status")["state"]
    (place.folder / "end").touch()
    wait_for(lambda: runner.poll() is not None, "the end of the runner")
    runner.communicate()
    assert 0 == runner.returncode
    assert "completed" == place.json("status")["state"]
