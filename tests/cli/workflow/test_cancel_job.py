"""`workflow cancel --job`, from another terminal: one job ends, and the rest of the workflow goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.running import NOBODY, workplace
from tests.waiting import LONG
from tests.workflow.live import ON_BOTH_ENGINES, Place, kill, lives

SPEC = """
name: Three
jobs:
  - name: slow
    command: 'head -c 50m /dev/zero | tail >/dev/null; sleep 60 & echo $! >child; echo $$ >pid; wait'
    retry: {times: 3, on: [143, 137]}
  - {name: after_slow, command: 'true', blocked_by: [slow]}
  - {name: other, command: 'until [ -e end ]; do sleep 0.02; done'}
  - {name: after_other, command: 'true', blocked_by: [other]}
"""


@ON_BOTH_ENGINES
def test_a_running_job_ends_with_all_it_started_and_the_rest_goes_on(place: Place) -> None:
    runner = place.start_run(SPEC)
    pid, child = place.await_running("pid"), place.await_running("child")
    done = place.call("cancel", "--job", "slow")
    assert (0, "jobmeter: job slow was cancelled; `workflow resume` runs it, and what needs it\n") == (
        done.returncode,
        done.stderr,
    )
    assert not lives(pid)
    assert not lives(child)
    assert {"slow": "cancelled", "after_slow": "blocked", "other": "running", "after_other": "waiting"} == (
        place.statuses()
    )
    (place.folder / "end").touch()
    _, messages = runner.communicate(timeout=LONG)
    assert 1 == runner.returncode
    assert "slow: cancelled on request" in messages
    assert "after_slow is blocked: it needs slow, which was cancelled" in messages
    assert "failed after" in messages
    jobs = {job["name"]: job for job in place.json("status")["jobs"]}
    assert ["cancelled", "blocked", "completed", "completed"] == [job["status"] for job in jobs.values()]
    assert "needs slow, which was cancelled" == jobs["after_slow"]["reason"]


@ON_BOTH_ENGINES
def test_what_it_used_until_then_is_kept_and_resume_runs_it(place: Place) -> None:
    runner = place.start_run(SPEC)
    place.await_running("pid")
    assert 0 == place.call("cancel", "--job", "1").returncode
    (place.folder / "end").touch()
    runner.communicate(timeout=LONG)
    attempts = [each for each in place.results() if each["name"] == "slow"]
    assert [("cancelled", 1)] == [(each["status"], each["attempt"]) for each in attempts], "it was not tried again"
    assert attempts[0]["memory_peak_bytes"] >= 50e6
    assert attempts[0]["cpu_seconds"] > 0
    place.write(SPEC.replace("wait'", "kill $!'"))
    assert 0 == place.call("resume").returncode
    assert {"completed"} == set(place.statuses().values())


def test_jobs_that_wait_are_cancelled_without_being_run(place: Place) -> None:
    runner = place.start_run(
        "name: sweep\njobs:\n"
        "- {name: 'first', command: 'echo $$ >pid; until [ -e end ]; do sleep 0.02; done', "
        "resource_requirements: {cpus: 2}}\n"
        "- {name: 'no_room', command: 'touch ran_no_room'}\n"
        "- {name: 'train_{i}', command: 'touch ran_{i}', blocked_by: [first], parameters: {i: '1:3'}}\n"
        "- {name: report, command: 'touch ran_report', blocked_by: ['train_*']}\n"
    )
    place.await_running("pid")
    done = place.call("cancel", "sweep", "--job", "no_room", "--job", "train_[12]")
    assert 0 == done.returncode, done.stderr
    assert 3 == done.stderr.count("was cancelled")
    (place.folder / "end").touch()
    assert 1 == _end(runner)
    assert ["ran_3"] == sorted(path.name for path in place.folder.glob("ran_*"))
    expected = {
        "first": "completed", "no_room": "cancelled", "train_1": "cancelled", "train_2": "cancelled",
        "train_3": "completed", "report": "blocked",
    }  # fmt: skip
    assert expected == place.statuses()
    assert 0 == place.call("resume").returncode
    assert {"completed"} == set(place.statuses().values())


def test_a_job_that_ignores_sigterm_is_killed(place: Place) -> None:
    runner = place.start_run(
        "name: stubborn\njobs: [{name: a, command: \"trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done\"}]"
    )
    pid = place.await_running("pid")
    assert 0 == place.call("cancel", "--job", "a").returncode
    assert not lives(pid)
    assert 1 == _end(runner)
    assert {"a": "cancelled"} == place.statuses()


def test_one_that_has_ended_is_not_cancelled_and_that_is_reported(place: Place) -> None:
    runner = place.start_run(
        "name: part\njobs: [{name: quick, command: 'true'}, {name: slow, blocked_by: [quick], "
        "command: 'echo $$ >pid; until [ -e end ]; do sleep 0.02; done'}]"
    )
    place.await_running("pid")
    done = place.call("cancel", "--job", "quick")
    assert 1 == done.returncode
    assert "jobmeter: job quick was not cancelled: it is completed already\n" == done.stderr
    (place.folder / "end").touch()
    assert 0 == _end(runner)


def test_a_pipe_of_a_killed_runner_is_no_runner_and_resume_takes_requests_again(place: Place) -> None:
    kill_at = SPEC.replace("sleep 60", "sleep 61")
    runner = place.start_run(kill_at)
    place.await_running("pid")
    kill(runner)
    assert "is not being run" in place.call("cancel", "--job", "slow").stderr
    (place.folder / "pid").unlink()
    runner = place.start("resume")
    place.await_running("pid")
    assert 0 == place.call("cancel", "--job", "slow").returncode
    (place.folder / "end").touch()
    assert 1 == _end(runner)
    directory = place.store / "workflows/three/1"
    assert not (directory / "control").exists()


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("slwo", "workflow Three has no job 'slwo'. Did you mean 'slow'?"),
        ("9", "workflow Three has no job '9'. They are numbered 1 to 4."),
        ("x*", "workflow Three has no job 'x*'. There are: slow, after_slow, other, after_other."),
    ],
)
def test_an_unknown_job_is_refused(place: Place, job: str, message: str) -> None:
    (place.folder / "end").touch()
    place.run(SPEC.replace("wait'", "kill $!'"))
    done = place.call("cancel", "--job", job)
    assert (2, f"jobmeter: {message}\n") == (done.returncode, done.stderr)


def test_jobs_of_another_user_cannot_be_cancelled() -> None:
    folder = Path(workplace())
    mine, theirs = Place(folder), Place(folder, NOBODY)
    runner = mine.start_run(SPEC)
    mine.await_running("pid")
    for path in (mine.store, *mine.store.rglob("*")):
        if not path.is_fifo():
            path.chmod(0o755)
    done = theirs.call("cancel", "--job", "slow")
    if os.getuid() == 0:
        assert (2, "jobmeter: the workflow is run by another user: only they can cancel its jobs\n") == (
            done.returncode,
            done.stderr,
        )
    assert 0 == mine.call("cancel").returncode
    runner.communicate()


def _end(runner: subprocess.Popen[str]) -> int:
    """The exit code of a runner that comes to its end."""
    runner.communicate(timeout=LONG)
    return int(runner.returncode)
