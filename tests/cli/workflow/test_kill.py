"""The runner is killed, or ended by a signal; its jobs end, what they used is kept, and the rest can be resumed."""

from __future__ import annotations

import collections
import json
import os
import random
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from jobmeter.launch.supervisor import GRACE
from tests.running import workplace
from tests.terminal import Terminal
from tests.waiting import LONG, wait_for
from tests.workflow.live import NOBODY, ON_BOTH_ENGINES, Place, guard_of, kill, lives, running_in

LONG_JOBS = """
name: long
jobs:
  - {name: a, command: 'echo $$ >>pids; exec sleep 60'}
  - {name: b, command: 'setsid sh -c "echo \\$\\$ >>pids; exec sleep 60" & echo $$ >>pids; sleep 60'}
  - {name: after, command: 'touch began', blocked_by: [a]}
"""


def started(place: Place, **more: object) -> subprocess.Popen[str]:
    """The runner of two jobs, of which one has a daemon."""
    runner = place.start_run(LONG_JOBS, **more)
    place.await_lines("pids", 3)
    return runner


def pids(place: Place) -> list[int]:
    return [int(line) for line in place.lines("pids")]


@ON_BOTH_ENGINES
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]
)
def test_a_signal_ends_the_jobs_and_what_they_used_is_kept(place: Place, number: int, code: int) -> None:
    runner = started(place)
    os.killpg(runner.pid, number)  # as a terminal would, to all of the foreground group
    _, said = runner.communicate(timeout=LONG)
    assert code == runner.returncode
    assert "jobmeter workflow resume long" in said
    assert not any(map(lives, pids(place)))
    assert [] == running_in(place.folder)
    assert {"a": "cancelled", "b": "cancelled", "after": "waiting"} == place.statuses()
    assert "stopped" == place.json("status")["state"]
    for result in place.results():
        assert result["cpu_seconds"] > 0
        assert result["memory_peak_bytes"] > 0
        assert result["wall_seconds"] > 0


def test_ctrl_c_at_a_terminal_ends_the_jobs(place: Place) -> None:
    spec = place.write(LONG_JOBS)
    terminal = Terminal(place.command("run", "--cpus", "2", str(spec)), place.environment(), cwd=str(place.folder))
    place.await_lines("pids", 3)
    terminal.press("\x03")
    assert 130 == terminal.exit_code(), terminal.plain
    assert [] == running_in(place.folder)
    assert {"a": "cancelled", "b": "cancelled", "after": "waiting"} == place.statuses()


STUBBORN = (
    "name: stubborn\njobs: [{name: a, command: 'trap \"\" TERM INT; echo $$ >pids; while :; do sleep 0.05; done'}]"
)


@ON_BOTH_ENGINES
def test_a_job_that_ignores_sigterm_is_killed_in_the_end(place: Place) -> None:
    runner = place.start_run(STUBBORN)
    place.await_running("pids")
    assert 143 == kill(runner, signal.SIGTERM)
    assert "cancelled" == place.result("a")["status"]
    assert 137 == place.result("a")["return_code"]
    assert [] == running_in(place.folder)


def test_a_second_signal_skips_sigterm(place: Place) -> None:
    runner = place.start_run(STUBBORN)
    place.await_running("pids")
    runner.send_signal(signal.SIGINT)
    time.sleep(1.2)  # what comes sooner is the same call to a group
    assert 130 == kill(runner, signal.SIGINT)
    assert place.result("a")["wall_seconds"] < GRACE
    assert [] == running_in(place.folder)


def test_a_signal_that_comes_twice_at_once_is_one(place: Place) -> None:
    spec = "name: gentle\njobs: [{name: a, command: 'trap \"sleep 0.3; echo bye >said; exit\" TERM; echo $$ >pids; while :; do sleep 0.05; done'}]"  # noqa: E501
    runner = place.start_run(spec)
    place.await_running("pids")
    runner.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    assert 143 == kill(runner, signal.SIGTERM)
    assert ["bye"] == place.lines("said")


def test_jobs_and_their_daemons_end_when_the_runner_is_killed(place: Place) -> None:
    runner = started(place)
    kill(runner)
    wait_for(lambda: running_in(place.folder) == [], "the end of all jobs")
    assert {"a": "lost", "b": "lost", "after": "waiting"} == place.statuses()
    assert "stopped" == place.json("status")["state"]


def test_they_end_when_the_whole_group_of_the_runner_is_killed(place: Place) -> None:
    runner = started(place)
    os.killpg(runner.pid, signal.SIGKILL)
    runner.communicate()
    wait_for(lambda: running_in(place.folder) == [], "the end of all jobs")
    assert {"a": "lost", "b": "lost", "after": "waiting"} == place.statuses()


@ON_BOTH_ENGINES
def test_what_is_left_when_runner_and_guard_were_killed_is_ended_by_resume(place: Place) -> None:
    runner = started(place)
    if place.engine == "local":  # elsewhere the jobs go on, and the engine finds them by its token
        os.kill(guard_of(runner.pid), signal.SIGKILL)
    kill(runner)
    left = pids(place)
    assert all(map(lives, left))
    place.write(LONG_JOBS.replace("sleep 60", "true"))
    done = place.call("resume", "long")
    assert 0 == done.returncode, done.stderr
    assert "ended what was left of 2 jobs whose runner was killed" in done.stderr
    assert not any(map(lives, left))
    assert {"a": "completed", "b": "completed", "after": "completed"} == place.statuses()
    assert [("a", 1), ("a", 2), ("b", 1), ("b", 2)] == [(each["name"], each["attempt"]) for each in place.results()[:4]]


def kill_shepherds(place: Place) -> None:
    """Those of the main processes: a daemon of LONG_JOBS is a child of its job."""
    for parent in {parent_of(pid) for pid in pids(place)} - set(pids(place)):
        os.kill(parent, signal.SIGKILL)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


@pytest.fixture(params=[0, NOBODY], ids=["root", "ordinary user"])
def anyone(request: pytest.FixtureRequest) -> Place:
    """A place of root, who has cgroups, or of an ordinary user."""
    return Place(Path(workplace()), request.param)


def test_jobs_whose_shepherds_were_killed_are_seen_to_their_end(anyone: Place) -> None:
    wait = "echo $$ >>pids; while [ ! -e end ]; do sleep 0.01; done"
    jobs = f"- {{name: a, command: '{wait}'}}\n- {{name: b, command: '{wait}; exit 3'}}"
    after = "- {name: after, command: 'test -e end', blocked_by: [a]}"
    runner = anyone.start_run(f"name: unattended\njobs:\n{jobs}\n{after}\n")
    anyone.await_lines("pids", 2)
    kill_shepherds(anyone)
    time.sleep(0.3)
    assert {"running"} == {anyone.statuses()[name] for name in "ab"}
    (anyone.folder / "end").touch()
    runner.communicate(timeout=LONG)
    assert 1 == runner.returncode
    assert {"a": "completed", "b": "failed", "after": "completed"} == anyone.statuses()
    assert 3 == anyone.result("b")["return_code"]
    assert [] == running_in(anyone.folder)


def test_jobs_without_shepherd_end_when_the_runner_gets_sigterm(anyone: Place) -> None:
    runner = started(anyone)
    kill_shepherds(anyone)
    assert 143 == kill(runner, signal.SIGTERM)
    assert [] == running_in(anyone.folder)
    assert {"a": "cancelled", "b": "cancelled", "after": "waiting"} == anyone.statuses()


def test_jobs_without_shepherd_end_when_the_runner_is_killed_too(anyone: Place) -> None:
    runner = started(anyone)
    kill_shepherds(anyone)
    kill(runner)
    wait_for(lambda: running_in(anyone.folder) == [], "the end of all jobs")
    assert {"a": "lost", "b": "lost", "after": "waiting"} == anyone.statuses()


def test_jobs_without_shepherd_are_ended_by_resume_when_runner_and_guard_were_killed(anyone: Place) -> None:
    runner = started(anyone)
    os.kill(guard_of(runner.pid), signal.SIGKILL)
    kill_shepherds(anyone)
    kill(runner)
    left = pids(anyone)
    assert all(map(lives, left))
    anyone.write(LONG_JOBS.replace("sleep 60", "true"))
    done = anyone.call("resume", "long")
    assert 0 == done.returncode, done.stderr
    assert "ended what was left of 2 jobs whose runner was killed" in done.stderr
    assert not any(map(lives, left))


TWO_HUNDRED = """
name: killed
jobs:
  - {name: "a_{i}", command: "echo + a_{i} >>log; sleep 0.03; echo - a_{i} >>log", parameters: {i: "1:100"}}
  - {name: "b_{i}", command: "echo + b_{i} >>log; sleep 0.02; echo - b_{i} >>log", parameters: {i: "1:100"}, blocked_by: ["a_{i}"]}
"""  # noqa: E501


@ON_BOTH_ENGINES
@pytest.mark.parametrize("seed", [int(os.environ.get("JOBMETER_SEED", "4"))])
def test_after_twenty_kills_every_job_is_done_and_only_those_in_flight_ran_again(place: Place, seed: int) -> None:
    print(f"seed {seed}")  # shown when it fails; JOBMETER_SEED sets it
    chance = random.Random(seed)
    spec = str(place.write(TWO_HUNDRED))
    words = ["run", spec]
    for _ in range(20):
        runner = place.start(*words, "--quiet", "--cpus", "4")
        before = len(place.lines("log"))
        # Some while it starts, some while its jobs run.
        ahead = chance.choice((0, 1, 3, 8, 14))
        wait_for(lambda: len(place.lines("log")) >= before + ahead or runner.poll() is not None, f"{ahead} lines more")  # noqa: B023
        time.sleep(chance.uniform(0.0, 0.03 if ahead else 0.4))
        kill(runner)
        wait_for(lambda: running_in(place.folder) == [], "the end of all jobs")
        if (place.store / "workflows/killed/1/plan.json").exists():
            words = ["resume", "killed"]
    done = place.call(*words, "--quiet", "--cpus", "4")
    assert 0 == done.returncode, done.stderr
    begun = collections.Counter(line[2:] for line in place.lines("log") if line.startswith("+"))
    jobs = [f"{step}_{number}" for step in "ab" for number in range(1, 101)]
    results = place.results("killed")
    in_flight = collections.Counter(each["name"] for each in results if each["status"] == "lost")
    completed = [each for each in results if each["status"] == "completed"]
    assert len(results) == sum(in_flight.values()) + len(completed)
    assert dict.fromkeys(jobs, 1) == collections.Counter(each["name"] for each in completed)
    # Four run at a time; there is a kill for each that was in flight, and for every other start an end.
    assert 0 < sum(in_flight.values()) <= 4 * 20
    tokens = [json.loads(line) for line in (place.store / "workflows/killed/1/tasks.jsonl").read_text().splitlines()]
    noted = collections.Counter(jobs[token["job"] - 1] for token in tokens)
    assert {} == {name: begun[name] for name in jobs if not 1 <= begun[name] <= noted[name]}
    if place.engine == "local":  # elsewhere a task may start after its runner was killed, and have no header
        assert {} == {name: begun[name] for name in jobs if not begun[name] <= 1 + in_flight[name]}
    assert all(each["cpu_seconds"] > 0 and each["memory_peak_bytes"] > 0 for each in completed)
    assert [] == running_in(place.folder)


UNCONNECTED = """
name: unconnected
jobs:
  - name: a
    command: |
      kill -9 $PPID
      (setsid sh -c 'echo $$ >daemon.new; mv daemon.new daemon; exec sleep 1000' &)
      until [ -e daemon ]; do sleep 0.01; done
"""


def test_a_daemon_that_nothing_connects_with_its_job_ends_with_the_workflow() -> None:
    """Its shepherd was killed, it has a session of its own, its parent is gone, and an ordinary user has no cgroup."""
    place = Place(Path(workplace()), NOBODY)
    done = place.run(UNCONNECTED)
    (daemon,) = map(int, place.lines("daemon"))
    assert not lives(daemon), done.stderr
    assert [] == running_in(place.folder)


def test_children_that_the_runner_had_before_are_not_ended() -> None:
    place = Place(Path(workplace()), NOBODY)
    words = place.command("run", "--cpus", "2", str(place.write("name: x\njobs: [{name: a, command: 'true'}]")))
    script = f"sleep 1000 >/dev/null 2>&1 & echo $! >before; exec {shlex.join(words)}"
    settings = {**place.environment(), "JOBMETER_ATTEMPT": "1"}
    subprocess.run(["sh", "-c", script], cwd=place.folder, env=settings, check=True, capture_output=True, timeout=LONG)
    (before,) = map(int, place.lines("before"))
    assert lives(before)
    os.kill(before, signal.SIGKILL)
