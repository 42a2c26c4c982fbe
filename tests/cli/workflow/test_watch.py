"""`workflow status --watch`, of a workflow that another process runs."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.terminal import Terminal
from tests.waiting import LONG, wait_for
from tests.workflow.live import ON_BOTH_ENGINES, Place, kill

SPEC = """
name: Watched
jobs:
  - {name: first, command: 'echo $$ >pid1; until [ -e go1 ]; do sleep 0.02; done'}
  - {name: second, command: 'echo $$ >pid2; until [ -e go2 ]; do sleep 0.02; done; exit 7', blocked_by: [first]}
  - {name: third, command: 'true', blocked_by: [second]}
"""


@pytest.fixture
def runner(place: Place) -> Iterator[subprocess.Popen[str]]:
    started = place.start_run(SPEC)
    place.await_running("pid1")
    yield started
    if started.poll() is None:
        kill(started, signal.SIGTERM)


@ON_BOTH_ENGINES
def test_in_a_pipe_there_is_a_line_for_each_change(place: Place, runner: subprocess.Popen[str]) -> None:
    watching = place.start("status", "--watch", "watched")
    assert watching.stdout is not None
    assert watching.stdout.readline().endswith("1 running, 2 waiting of 3 jobs\n")
    (place.folder / "go1").touch()
    place.await_running("pid2")
    # Two changes that come within a second may be one line.
    while "1 completed, 1 running" not in (line := watching.stdout.readline()):
        assert ": running (process" in line
    (place.folder / "go2").touch()
    rest, errors = watching.communicate(timeout=LONG)
    assert rest.splitlines()[-1].endswith("Watched, run 1: failed: 1 completed, 1 blocked, 1 failed of 3 jobs")
    assert ("", 0) == (errors, watching.returncode)


def test_with_json_each_line_is_an_object(place: Place, runner: subprocess.Popen[str]) -> None:
    watching = place.start("status", "--watch", "--json")
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    assert ("running", {"running": 1, "waiting": 2}) == (first["state"], first["counts"])
    for name in ("go1", "go2"):
        (place.folder / name).touch()
    rest, _ = watching.communicate(timeout=LONG)
    last = json.loads(rest.splitlines()[-1])
    assert ("failed", ["completed", "failed", "blocked"]) == (last["state"], [job["status"] for job in last["jobs"]])


def test_of_a_workflow_that_has_ended_the_status_is_all(place: Place) -> None:
    place.run("name: done\njobs: [{name: a, command: 'true'}]")
    done = place.call("status", "--watch")
    assert (0, 1) == (done.returncode, len(done.stdout.splitlines()))
    assert done.stdout.endswith("done, run 1: completed: 1 completed of 1 jobs\n")


def test_on_a_terminal_it_is_shown_until_the_end_and_the_final_state_stays(
    place: Place, runner: subprocess.Popen[str]
) -> None:
    terminal = Terminal(place.command("status", "--watch"), place.environment())
    terminal.wait_for("0 completed  1 running  2 waiting")
    assert "\x1b[?1049h" in terminal.written, "the whole screen is used"
    terminal.resize(10, 40)
    _await_width(terminal, 40)
    (place.folder / "go1").touch()
    place.await_running("pid2")
    terminal.wait_for("1 completed  1 running  1 waiting")
    (place.folder / "go2").touch()
    assert 0 == terminal.process.wait(LONG)
    terminal.wait_for("`jobmeter workflow resume watched` runs what is left.")
    final = terminal.written.rpartition("\x1b[?1049l")[2]
    assert "Watched, run 1: failed" in final
    assert "second" in final
    terminal.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_watching_alone_and_the_terminal_is_as_before(
    place: Place, runner: subprocess.Popen[str], number: int, code: int
) -> None:
    terminal = Terminal(place.command("status", "--watch"), place.environment())
    terminal.wait_for("1 running")
    if number == signal.SIGINT:
        terminal.press("\x03")
    else:
        terminal.process.send_signal(number)
    assert code == terminal.process.wait(LONG)

    def is_restored() -> bool:
        shown = terminal.written
        last = [shown.rfind(f"\x1b[?{mode}") for mode in ("1049h", "1049l", "25l", "25h")]
        return -1 < last[0] < last[1] and -1 < last[2] < last[3]

    wait_for(is_restored, "that the terminal is as before")
    assert "Traceback" not in terminal.written
    terminal.close()
    assert "running" == place.json("status")["state"]


def test_it_ends_when_the_runner_is_killed(place: Place, runner: subprocess.Popen[str]) -> None:
    watching = place.start("status", "--watch")
    assert watching.stdout is not None
    watching.stdout.readline()
    kill(runner)
    rest, _ = watching.communicate(timeout=LONG)
    assert "stopped: 2 waiting, 1 lost of 3 jobs" in rest.splitlines()[-1]


def _await_width(terminal: Terminal, columns: int) -> None:
    """Wait for a frame that was drawn for a terminal of this width."""
    until = time.monotonic() + LONG
    while not any(len(line) == columns for line in terminal.plain.replace("\r", "\n").split("\n")):
        assert time.monotonic() < until, "it was never drawn that wide"
        time.sleep(0.02)
