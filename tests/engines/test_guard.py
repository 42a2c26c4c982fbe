from __future__ import annotations

import signal
import subprocess
import sys

from jobmeter.engines.guard import Guard, watch
from jobmeter.launch.leftover_jobs import LeftJob
from tests.launch.owned import owned
from tests.waiting import wait_for
from tests.workflow.live import Place, lives

RUNNER = """
import os, signal, sys
from jobmeter.engines.guard import Guard
guard = Guard()
guard.add(int(sys.argv[2]), int(sys.argv[3]))
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
guard.close()
"""
JOB = "echo $$ >>{}/pids; exec sleep 60"


def line_of(job: LeftJob, group: str = "") -> str:
    """What the guard reads when a job comes."""
    assert job.main is not None
    return f"+{job.shepherd.pid} {job.main.pid} {group}\n"


def test_those_that_came_and_did_not_go_are_left_when_the_lines_end() -> None:
    with owned("sleep 60", "sleep 60") as jobs:
        first, second = jobs.jobs
        came = [*map(line_of, jobs.jobs)]
        assert {first, second} == watch(came).jobs
        assert {second} == watch([*came, f"-{first.shepherd.pid}\n"]).jobs
        assert {first, second} == watch([*came, f"-{first.shepherd.pid}\n", came[0]]).jobs


def test_after_the_last_word_none_are_left() -> None:
    with owned("sleep 60") as jobs:
        assert set() == watch([line_of(jobs.jobs[0]), ".\n"]).jobs


def test_a_job_whose_shepherd_was_gone_before_it_was_looked_at_is_known_by_its_main_process(place: Place) -> None:
    with owned(JOB.format(place.folder)) as jobs:
        place.await_lines("pids", 1)
        jobs.kill_shepherds()
        jobs.kill_owner()
        (job,) = watch([line_of(jobs.jobs[0], "/sys/fs/cgroup/a b")]).jobs
    assert (jobs.jobs[0].main, "/sys/fs/cgroup/a b") == (job.main, job.group)


def test_containers_are_minded_once_there_were_some() -> None:
    assert [False, True, False] == [watch(lines).containers for lines in ([], ["c\n"], ["c\n", ".\n"])]


def test_jobs_end_when_their_runner_is_killed_and_not_when_it_takes_leave(place: Place) -> None:
    with owned(JOB.format(place.folder)) as jobs:
        (pid,) = map(int, place.await_lines("pids", 1))
        words = line_of(jobs.jobs[0])[1:].split()
        subprocess.run([sys.executable, "-c", RUNNER, "leaves", *words], check=True)
        assert lives(pid)
        subprocess.run([sys.executable, "-c", RUNNER, "killed", *words], check=False)
        wait_for(lambda: not lives(pid), "the end of the job")


def test_a_guard_that_was_killed_costs_the_runner_nothing() -> None:
    guard = Guard()
    guard._process.kill()
    guard._process.wait()
    # None of them fails, nor starts another one.
    guard.add(1, 1)
    guard.remove(1)
    guard.close()
    assert -signal.SIGKILL == guard._process.returncode


def test_jobs_end_when_their_runner_is_killed_and_their_shepherd_was_before(place: Place) -> None:
    with owned(JOB.format(place.folder)) as jobs:
        (pid,) = map(int, place.await_lines("pids", 1))
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER.replace("if sys", "print(flush=True); sys.stdin.read(1)\nif sys"), "killed",
             *line_of(jobs.jobs[0])[1:].split()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert runner.stdout is not None
        runner.stdout.readline()
        jobs.kill_shepherds()
        assert lives(pid)
        runner.communicate(b"\n")
        wait_for(lambda: not lives(pid), "the end of the job")


def test_a_detached_guard_outlives_whoever_kills_all_children_of_the_runner(place: Place) -> None:
    runner = RUNNER.replace("Guard()", "Guard(detached=True)").replace(
        'if sys.argv[1] == "killed":',
        """
for child in open(f"/proc/self/task/{os.getpid()}/children").read().split():
    os.kill(int(child), signal.SIGKILL)
if sys.argv[1] == "killed":""",
    )
    with owned(JOB.format(place.folder)) as jobs:
        (pid,) = map(int, place.await_lines("pids", 1))
        words = line_of(jobs.jobs[0])[1:].split()
        subprocess.run([sys.executable, "-c", runner, "leaves", *words], check=True)
        assert lives(pid)
        subprocess.run([sys.executable, "-c", runner, "killed", *words], check=False)
        wait_for(lambda: not lives(pid), "the end of the job")
