"""How long each process lived and what it used, in the table of processes: real processes, and a clock of our own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from jobmeter.collectors import load
from jobmeter.collectors.contract import Moment, ProcessUse, Target
from tests.running import NOBODY, interpreter, meter

PARENT = """\
import os, signal, sys, time
while time.process_time() < 0.3: pass
reads, writes = os.pipe()  # the child ends with its parent at the latest
child = os.posix_spawn("/bin/cat", ["cat"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reads, 0)])
print(child, flush=True)
for line in sys.stdin:
    if line == "end the child\\n":
        os.kill(child, signal.SIGKILL)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    if line == "reap the child\\n":
        os.waitpid(child, 0)
    print("done", flush=True)
"""


class Job:
    """A Python with one child, `cat`; both are measured from `attached` on."""

    def __init__(self, process: subprocess.Popen[str], collector: str) -> None:
        assert process.stdout is not None
        self._process = process
        self.pid = process.pid
        self.child = int(process.stdout.readline())
        self.attached_after = time.monotonic()
        target = Target(root=process.pid, main=process.pid, root_is_job=True)
        self.source: Any = load(collector).open(target, frozenset())
        self.attached = time.monotonic()

    def send(self, order: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(order, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def end(self) -> None:
        """End it, to be waited for still."""
        self._process.kill()
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def reap(self) -> None:
        self._process.wait()

    def look(self, *, quiet: bool = False) -> tuple[float, float]:
        """Read; the times before and after."""
        before = time.monotonic()
        self.source.read(Moment(before, quiet))
        return before, time.monotonic()

    def use(self, pid: int) -> ProcessUse:
        (use,) = (use for use in self.source.processes() if use.identity.pid == pid)
        assert isinstance(use, ProcessUse)
        return use

    def live(self) -> set[int]:
        return {use.identity.pid for use in self.source.live()}


@pytest.fixture(params=["proc", "psutil"])
def job(request: pytest.FixtureRequest) -> Iterator[Job]:
    words = [sys.executable, "-c", PARENT]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        job = Job(process, request.param)
        try:
            yield job
        finally:
            job.source.close()
            process.kill()


def pause() -> None:
    time.sleep(0.4)


TICK = 0.02
"""Seconds that a start in clock ticks and a rounded result may be off."""


def test_what_lived_at_the_last_look_lived_on_while_nothing_of_the_job_ran(job: Job) -> None:
    job.look()
    pause()
    before, after = job.look(quiet=True)
    for pid in (job.pid, job.child):
        assert before - job.attached - TICK <= job.use(pid).seconds <= after - job.attached_after + TICK


def test_who_ended_between_two_looks_did_not_end_at_the_first(job: Job) -> None:
    job.look()
    pause()
    seen, seen_after = job.look(quiet=True)
    pause()
    job.send("end the child")
    job.send("reap the child")
    pause()
    gone, gone_after = job.look()
    lived = job.use(job.child).seconds
    # Anywhere in between: the middle is at most half the gap off.
    earliest, latest = (seen + gone) / 2 - job.attached, (seen_after + gone_after) / 2 - job.attached_after
    assert earliest - TICK <= lived <= latest + TICK


def test_a_process_that_ended_and_is_not_waited_for_grows_no_older_and_does_not_live(job: Job) -> None:
    job.look()
    job.send("end the child")
    _, ended = job.look()
    pause()
    job.look()
    assert job.use(job.child).seconds <= ended - job.attached_after + TICK
    assert job.live() == {job.pid}
    pause()
    job.send("reap the child")
    job.look()
    assert job.use(job.child).seconds <= ended - job.attached_after + TICK


def test_of_something_that_ran_before_only_what_is_measured_counts(job: Job) -> None:
    _, after = job.look()
    use = job.use(job.pid)
    assert use.seconds <= after - job.attached_after + TICK
    assert use.cpu_seconds <= 0.1


def test_the_process_that_was_attached_to_ends_as_all_others_do(job: Job) -> None:
    job.look()
    job.end()
    _, ended = job.look()
    pause()
    job.reap()
    job.look()
    pause()
    job.look()
    assert job.use(job.pid).seconds <= ended - job.attached_after + TICK
    assert job.pid not in job.live()


TIMED = """\
import subprocess, time
for seconds in ("0.8", "0.3"):
    began = time.monotonic()
    subprocess.run(["sleep", seconds])
    print(time.monotonic() - began, flush=True)
"""


@pytest.mark.parametrize("user", [pytest.param(0, id="root"), pytest.param(NOBODY, id="ordinary user")])
def test_sleepers_in_turn_are_shown_for_as_long_as_they_slept(user: int) -> None:
    done = meter(interpreter(), "-c", TIMED, user=user)
    lived = {entry["cmd"]: entry["seconds"] for entry in done.record["processes"]}
    first, second = map(float, done.stdout.split())
    assert lived["sleep 0.8"] == pytest.approx(first, abs=0.25)
    assert lived["sleep 0.3"] == pytest.approx(second, abs=0.25)
    (main,) = (seconds for cmd, seconds in lived.items() if not cmd.startswith("sleep"))
    assert main == pytest.approx(done.record["wall_seconds"], abs=0.1)
