from __future__ import annotations

import subprocess
import sys

from jobmeter.engines.guard import Guard, watch
from tests.launch.owned import owned
from tests.workflow.live import Place, lives, wait_for

RUNNER = """
import os, signal, sys
from jobmeter.engines.guard import Guard
guard = Guard()
for pid in sys.argv[2:]:
    guard.add(int(pid))
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
guard.close()
"""
JOB = "echo $$ >>{}/pids; sleep 60"


def test_those_that_came_and_did_not_go_are_left_when_the_lines_end() -> None:
    with owned("sleep 60", "sleep 60") as jobs:
        first, second = jobs.shepherds
        came = [f"+{first.pid}\n", f"+{second.pid}\n"]
        assert {first, second} == watch(came).shepherds
        assert {second} == watch([*came, f"-{first.pid}\n"]).shepherds
        assert {first, second} == watch([*came, f"-{first.pid}\n", f"+{first.pid}\n"]).shepherds


def test_after_the_last_word_none_are_left() -> None:
    with owned("sleep 60") as jobs:
        assert set() == watch([f"+{jobs.shepherds[0].pid}\n", ".\n"]).shepherds


def test_one_that_was_gone_before_it_was_looked_at_is_not_left() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert set() == watch([f"+{gone.pid}\n"]).shepherds


def test_containers_are_minded_once_there_were_some() -> None:
    assert [False, True, False] == [watch(lines).containers for lines in ([], ["c\n"], ["c\n", ".\n"])]


def test_jobs_end_when_their_runner_is_killed_and_not_when_it_takes_leave(place: Place) -> None:
    with owned(JOB.format(place.folder)) as jobs:
        (pid,) = map(int, place.await_lines("pids", 1))
        words = [str(jobs.shepherds[0].pid)]
        subprocess.run([sys.executable, "-c", RUNNER, "leaves", *words], check=True)
        assert lives(pid)
        subprocess.run([sys.executable, "-c", RUNNER, "killed", *words], check=False)
        wait_for(lambda: not lives(pid), "the end of the job")


def test_a_guard_that_was_killed_costs_the_runner_nothing() -> None:
    guard = Guard()
    guard._process.kill()
    guard._process.wait()
    guard.add(1)
    guard.remove(1)
    guard.close()
