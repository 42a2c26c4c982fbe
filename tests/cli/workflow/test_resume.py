from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from tests.workflow.live import ON_BOTH_ENGINES, Place, kill, running_in

SPEC = """
name: chain
jobs:
  - {name: first, command: 'echo first >>log; cat raw >one', inputs: [raw], outputs: [one]}
  - {name: second, command: 'echo second >>log; cat one >two', inputs: [one], outputs: [two]}
  - {name: third, command: 'echo third >>log', blocked_by: [second]}
  - {name: alone, command: 'echo alone >>log'}
"""


@pytest.fixture
def chain(place: Place) -> Place:
    """A place where all four jobs are done."""
    place.write("data", "raw")
    assert 0 == place.run(SPEC).returncode
    assert ["alone", "first", "second", "third"] == sorted(place.lines("log"))
    (place.folder / "log").unlink()
    return place


def resumed(place: Place, *words: str) -> list[str]:
    """What ran again."""
    done = place.call("resume", *words)
    assert 0 == done.returncode, done.stderr
    return place.lines("log")


@ON_BOTH_ENGINES
def test_what_is_done_is_not_run_again(chain: Place) -> None:
    assert [] == resumed(chain)
    assert "all 4 jobs are done" in chain.call("resume").stderr


@ON_BOTH_ENGINES
def test_a_job_whose_command_changed_runs_with_those_that_need_it(chain: Place) -> None:
    chain.write(SPEC.replace("cat one >two", "cp one two"))
    assert ["second", "third"] == resumed(chain)
    assert [] == resumed(chain)[2:]


def test_a_job_whose_input_changed_runs_with_those_that_need_it(chain: Place) -> None:
    chain.write("other data", "raw")
    assert ["first", "second", "third"] == resumed(chain)
    assert "other data" == (chain.folder / "two").read_text()


@ON_BOTH_ENGINES
def test_a_job_whose_output_is_gone_runs_with_those_that_need_it(chain: Place) -> None:
    (chain.folder / "two").unlink()
    assert ["second", "third"] == resumed(chain)


def test_a_job_that_was_added_runs_and_gets_a_number_of_its_own(chain: Place) -> None:
    chain.write(SPEC.replace("jobs:\n", "jobs:\n  - {name: new, command: 'echo new >>log', blocked_by: [first]}\n"))
    assert ["new"] == resumed(chain)
    assert {"first": 1, "second": 2, "third": 3, "alone": 4, "new": 5} == numbers(chain)


def test_a_job_that_was_renamed_is_another_and_takes_no_number_that_was_given(chain: Place) -> None:
    chain.write(SPEC.replace("name: alone", "name: lonely"))
    assert ["alone"] == resumed(chain)
    assert {"first": 1, "second": 2, "third": 3, "lonely": 5} == numbers(chain)
    (chain.folder / "log").unlink()
    chain.write(SPEC)
    assert [] == resumed(chain)
    assert {"first": 1, "second": 2, "third": 3, "alone": 4} == numbers(chain)
    chain.write(SPEC.replace("name: alone", "name: solitary"))
    assert ["alone"] == resumed(chain)
    assert 6 == numbers(chain)["solitary"]


def test_a_job_that_was_removed_is_no_more_counted(chain: Place) -> None:
    chain.write(
        SPEC.replace("  - {name: alone, command: 'echo alone >>log'}\n", "").replace("cp one two", "cat one >two")
    )
    (chain.folder / "two").unlink()
    done = chain.call("resume")
    assert "3 completed of 3 jobs" in done.stderr
    assert ["second", "third"] == chain.lines("log")


def numbers(place: Place) -> dict[str, int]:
    return {job["name"]: job["job_id"] for job in place.json("status")["jobs"]}


@ON_BOTH_ENGINES
def test_what_failed_runs_again_with_what_it_blocked(place: Place) -> None:
    spec = """
name: mended
jobs:
  - {name: good, command: 'echo good >>log'}
  - {name: bad, command: 'echo bad >>log; [ -e mended ]'}
  - {name: after, command: 'echo after >>log', blocked_by: [bad]}
"""
    assert 1 == place.run(spec).returncode
    (place.folder / "mended").touch()
    (place.folder / "log").unlink()
    done = place.call("resume")
    assert 0 == done.returncode
    assert "2 of 3 jobs to run, 1 are done" in done.stderr
    assert ["bad", "after"] == place.lines("log")
    assert [("bad", 1, "failed"), ("bad", 2, "completed")] == [
        (each["name"], each["attempt"], each["status"]) for each in place.results() if each["name"] == "bad"
    ]
    assert "completed" == place.json("status")["state"]


@ON_BOTH_ENGINES
def test_a_chain_that_was_cut_after_its_first_ran_again_is_finished_by_the_next(place: Place) -> None:
    spec = """
name: cut
jobs:
  - {name: first, command: 'echo first >>log', outputs: [one]}
  - {name: second, command: 'echo second >>log; [ ! -e hang ] || exec sleep 60', blocked_by: [first]}
"""
    place.write("", "one")
    assert 0 == place.run(spec).returncode
    place.write(spec.replace("first >>log", "first >>log; true"))
    (place.folder / "hang").touch()
    runner = place.start("resume", "cut")
    place.await_lines("log", 4)
    kill(runner, signal.SIGKILL)
    (place.folder / "hang").unlink()
    (place.folder / "log").unlink()
    assert ["second"] == resumed(place)


def test_dry_run_says_why_each_job_would_run_and_starts_nothing(chain: Place) -> None:
    (chain.folder / "two").unlink()
    done = chain.call("resume", "--dry-run")
    assert [
        "first: done",
        "second: two is missing",
        "third: second runs again",
        "alone: done",
    ] == done.stdout.splitlines()
    assert [] == chain.lines("log")
    done = chain.call("run", "spec.yaml", "--only-changed", "--dry-run", "--json")
    assert [
        {"job_id": 1, "name": "first", "done": True},
        {"job_id": 2, "name": "second", "done": False, "reason": "two is missing"},
        {"job_id": 3, "name": "third", "done": False, "reason": "second runs again"},
        {"job_id": 4, "name": "alone", "done": True},
    ] == json.loads(done.stdout)


def test_an_input_that_is_gone_is_reported_before_anything_starts(chain: Place) -> None:
    (chain.folder / "raw").unlink()
    done = chain.call("resume")
    assert 2 == done.returncode
    assert f"needs {chain.folder}/raw, which is not there" in done.stderr
    assert [] == chain.lines("log")


@ON_BOTH_ENGINES
def test_while_one_runs_it_another_does_not(place: Place) -> None:
    spec = "name: busy\njobs: [{name: a, command: 'echo $$ >pid; exec sleep 60'}]"
    runner = place.start_run(spec)
    place.await_running("pid")
    done = place.call("resume", "busy")
    assert 2 == done.returncode
    assert [
        f"jobmeter: workflow busy (run 1) is being run by process {runner.pid} on {os.uname().nodename}. "
        "`jobmeter workflow cancel busy` ends it."
    ] == done.stderr.splitlines()
    kill(runner, signal.SIGTERM)
    assert [] == running_in(place.folder)


def test_a_spec_that_moved_is_named(chain: Place) -> None:
    elsewhere = chain.write(SPEC, "elsewhere.yaml")
    (chain.folder / "spec.yaml").unlink()
    done = chain.call("resume")
    assert 2 == done.returncode
    assert "the spec of this workflow is gone" in done.stderr
    assert [] == resumed(chain, str(elsewhere))


def test_a_runner_that_was_killed_before_it_began_left_nothing_to_resume(place: Place) -> None:
    (place.store / "workflows/unborn/1/logs").mkdir(parents=True)
    done = place.call("resume", "unborn")
    assert 2 == done.returncode
    assert 1 == done.stderr.count("\n")
    assert [] == place.json("list")


def test_an_earlier_run_can_be_resumed_by_its_number(place: Place) -> None:
    spec = "name: many\njobs: [{name: a, command: '[ -e mended ]'}]"
    assert [1, 1] == [place.run(spec).returncode for _ in range(2)]
    (place.folder / "mended").touch()
    assert 0 == place.call("resume", "many", "--run-id", "1").returncode
    assert ("completed", "failed") == tuple(place.json("status", "many", "--run-id", n)["state"] for n in ("1", "2"))


def test_two_that_resume_at_one_time_do_not_both(place: Place) -> None:
    spec = "name: race\njobs: [{name: a, command: '[ -e mended ] && echo ran >>log && sleep 0.5'}]"
    assert 1 == place.run(spec).returncode
    (place.folder / "mended").touch()
    runners = [place.start("resume", "race", stderr=subprocess.DEVNULL) for _ in range(3)]
    codes = sorted(kill_none(runner) for runner in runners)
    assert 0 == codes[0]
    assert ["ran"] == place.lines("log")


def kill_none(runner: subprocess.Popen[str]) -> int:
    runner.communicate()
    return runner.returncode
