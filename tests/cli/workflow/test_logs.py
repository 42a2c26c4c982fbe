"""`workflow logs`: what a job wrote, while it runs and after."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.terminal import Terminal
from tests.waiting import LONG, wait_for
from tests.workflow.live import ON_BOTH_ENGINES, Place, kill

ENDED = """
name: Talk
jobs:
  - {name: both, command: 'echo out; echo err >&2'}
  - {name: 'many_{i}', command: 'seq {i}00', parameters: {i: '1:2'}}
  - name: again
    command: 'echo attempt $JOBMETER_ATTEMPT; [ $JOBMETER_ATTEMPT = 3 ]'
    retry: {times: 2, on: [1]}
  - {name: broken, command: 'echo why >&2; exit 3'}
  - {name: never, command: 'true', blocked_by: [broken]}
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("talk"))
    place.run(ENDED)
    return place


@pytest.mark.parametrize("job", ["both", "1"])
def test_stdout_goes_to_stdout_and_stderr_to_stderr(ended: Place, job: str) -> None:
    done = ended.call("logs", job)
    assert (0, "out\n", "err\n") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", [(), ("talk",)])
def test_without_a_job_those_with_output_are_listed(ended: Place, words: tuple[str, ...]) -> None:
    done = ended.call("logs", *words)
    assert "1  both\n2  many_1\n3  many_2\n4  again\n5  broken\n" == done.stdout
    expected = "jobmeter: these jobs of workflow talk have output. Name one: jobmeter workflow logs JOB talk\n"
    assert (0, expected) == (done.returncode, done.stderr)


def test_an_option_for_one_job_needs_its_name(ended: Place) -> None:
    done = ended.call("logs", "--attempt", "2")
    expected = "jobmeter: --attempt: of which job? `jobmeter workflow logs` lists those that have output\n"
    assert (2, "", expected) == (done.returncode, done.stdout, done.stderr)


def test_the_output_of_the_only_job_needs_no_name(place: Place) -> None:
    place.run("name: single\njobs: [{name: a, command: 'echo out; echo err >&2'}]")
    for words in ((), ("single",), ("a",), ("-f",)):
        done = place.call("logs", *words)
        assert (0, "out\n", "err\n") == (done.returncode, done.stdout, done.stderr)


def test_a_run_of_another_workflow_than_the_last_is_named_by_its_number(place: Place) -> None:
    for _ in range(2):
        place.run("name: single\njobs: [{name: a, command: 'echo out'}]")
    place.run("name: later\njobs: [{name: b, command: 'echo late'}]")
    done = place.call("logs", "single", "--run-id", "2")
    assert (0, "out\n", "") == (done.returncode, done.stdout, done.stderr)


def test_one_stream_alone(ended: Place) -> None:
    done = ended.call("logs", "both", "--stderr")
    assert ("", "err\n") == (done.stdout, done.stderr)
    done = ended.call("logs", "both", "--stdout", "-f")
    assert ("out\n", "") == (done.stdout, done.stderr)


def test_the_last_attempt_unless_another_is_named(ended: Place) -> None:
    assert "attempt 3\n" == ended.call("logs", "again").stdout
    assert "attempt 2\n" == ended.call("logs", "again", "--attempt", "2").stdout
    assert "attempt 1\n" == ended.call("logs", "again", "--attempt", "1", "-f").stdout


@pytest.mark.parametrize(
    ("count", "expected"),
    [("0", ""), ("1", "200\n"), ("3", "198\n199\n200\n"), ("500", "".join(f"{n}\n" for n in range(1, 201)))],
)
def test_the_last_lines(ended: Place, count: str, expected: str) -> None:
    assert expected == ended.call("logs", "many_2", "-n", count).stdout


def test_the_last_lines_of_a_large_log_whose_last_line_has_no_end(place: Place) -> None:
    place.run("name: large\njobs: [{name: a, command: 'seq 100000; printf end'}]")
    assert "99999\n100000\nend" == place.call("logs", "a", "-n", "3").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bth"], "workflow Talk has no job 'bth'. Did you mean 'both'?"),
        (["99"], "workflow Talk has no job '99'. They are numbered 1 to 6."),
        (["many_*"], "'many_*' means 2 jobs: many_1, many_2. Name one of them."),
        (["again", "--attempt", "7"], "job again has no output of attempt 7. There is output of: 1, 2, 3."),
        (["never"], "job never did not run: it needs broken, which failed"),
        (["never", "-f"], "job never did not run: it needs broken, which failed"),
        (["both", "nosuch"], "there is no workflow 'nosuch'. `jobmeter workflow list` lists those that were run."),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(ended: Place, words: list[str], message: str) -> None:
    done = ended.call("logs", *words)
    assert (2, "", f"jobmeter: {message}\n") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "words", [["both", "--attempt", "0"], ["both", "-n", "-1"], ["both", "--stdout", "--stderr"], []]
)
def test_bad_options_are_refused_in_one_line(place: Place, words: list[str]) -> None:
    done = place.call("logs", *words)
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))


STEPS = """
name: Steps
jobs:
  - {name: first, command: 'echo one; touch one; until [ -e go ]; do sleep 0.02; done; echo two; echo late >&2'}
  - {name: second, command: 'echo three', blocked_by: [first]}
  - {name: last, command: 'until [ -e end ]; do sleep 0.02; done', blocked_by: [second]}
"""


@ON_BOTH_ENGINES
def test_follow_shows_what_comes_and_ends_with_the_job_not_with_the_workflow(place: Place) -> None:
    runner = place.start_run(STEPS)
    wait_for((place.folder / "one").exists, "the first line")
    first, second = place.start("logs", "-f", "first"), place.start("logs", "--follow", "2", "steps")
    assert first.stdout is not None
    assert "one\n" == first.stdout.readline()
    (place.folder / "go").touch()
    assert ("two\n", "late\n", 0) == (*first.communicate(timeout=LONG), first.returncode)
    assert ("three\n", "", 0) == (*second.communicate(timeout=LONG), second.returncode), "a job that waits is awaited"
    assert "running" == place.json("status")["state"]
    (place.folder / "end").touch()
    runner.communicate(timeout=LONG)


def test_follow_goes_on_with_the_next_attempt(place: Place) -> None:
    runner = place.start_run(
        "name: again\njobs: [{name: a, retry: {times: 1, on: [1]}, command: 'echo $JOBMETER_ATTEMPT; touch began; "
        "until [ -e go$JOBMETER_ATTEMPT ]; do sleep 0.02; done; [ $JOBMETER_ATTEMPT = 2 ]'}]"
    )
    wait_for((place.folder / "began").exists, "the first attempt")
    both, one = place.start("logs", "-f", "a"), place.start("logs", "-f", "a", "--attempt", "1")
    for follower in (both, one):
        assert follower.stdout is not None
        assert "1\n" == follower.stdout.readline()
    (place.folder / "go1").touch()
    assert ("", 0) == (one.communicate(timeout=LONG)[0], one.returncode)
    (place.folder / "go2").touch()
    assert ("2\n", 0) == (both.communicate(timeout=LONG)[0], both.returncode)
    runner.communicate(timeout=LONG)


def test_follow_ends_when_the_runner_is_killed(place: Place) -> None:
    runner = place.start_run("name: killed\njobs: [{name: a, command: 'echo one; touch one; exec sleep 60'}]")
    wait_for((place.folder / "one").exists, "the job")
    follower = place.start("logs", "-f", "a")
    assert follower.stdout is not None
    assert "one\n" == follower.stdout.readline()
    kill(runner)
    assert ("", "", 0) == (*follower.communicate(timeout=LONG), follower.returncode)


def test_ctrl_c_ends_the_following_alone_and_leaves_no_words(place: Place) -> None:
    runner = place.start_run(STEPS)
    wait_for((place.folder / "one").exists, "the job")
    terminal = Terminal(place.command("logs", "-f", "first"), place.environment())
    terminal.wait_for("one")
    terminal.press("\x03")
    assert 130 == terminal.process.wait(LONG)
    terminal.wait_for("^C")
    assert "one\r\n^C" == terminal.plain
    terminal.close()
    assert "running" == place.json("status")["state"]
    for name in ("go", "end"):
        (place.folder / name).touch()
    runner.communicate(timeout=LONG)
    assert 0 == runner.returncode


def test_a_reader_that_closes_the_pipe_ends_it(place: Place) -> None:
    place.run("name: large\njobs: [{name: a, command: 'seq 1000000'}]")
    reading, writing = os.pipe()
    follower = place.start("logs", "a", stdout=writing)
    os.close(writing)
    assert b"1\n" == os.read(reading, 2)
    os.close(reading)
    _, errors = follower.communicate(timeout=LONG)
    assert (141, "") == (follower.returncode, errors)


def test_bytes_are_as_they_were_in_a_pipe_and_control_no_terminal(place: Place) -> None:
    script = place.folder / "write.py"
    script.write_text(
        "import sys\n"
        r"sys.stdout.buffer.write(b'\x1b[31mred\x1b[0m tab\t\xff caf\xc3\xa9 \x1b]0;title\x07 \x1b[2J\n')",
        encoding="utf-8",
    )
    place.run("name: raw\njobs: [{name: a, command: 'python3 write.py'}]")
    done = place.call("logs", "a", errors="surrogateescape")
    assert "\x1b[31mred\x1b[0m tab\t\udcff café \x1b]0;title\x07 \x1b[2J\n" == done.stdout
    terminal = Terminal(place.command("logs", "a"), place.environment())
    assert 0 == terminal.process.wait(LONG)
    terminal.wait_for("title")
    wait_for(lambda: terminal.written.endswith("\x1b[0m"), "the colours to be reset")
    shown = "\x1b[31mred\x1b[0m tab\t\\xff café \\x1b]0;title\\x07 \\x1b[2J\r\n\x1b[0m"
    assert shown == terminal.written
    terminal.close()


def test_a_link_in_place_of_a_log_is_not_followed(place: Place, tmp_path: Path) -> None:
    place.run("name: linked\njobs: [{name: a, command: 'true'}]")
    (path,) = place.store.glob("workflows/linked/1/logs/a.1.out")
    path.unlink()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path.symlink_to(secret)
    done = place.call("logs", "a")
    assert done.returncode != 0
    assert "secret" not in done.stdout
    assert "symbolic link" in done.stderr


def test_sigterm_ends_it(place: Place) -> None:
    runner = place.start_run(STEPS)
    wait_for((place.folder / "one").exists, "the job")
    follower = place.start("logs", "-f", "first")
    assert follower.stdout is not None
    follower.stdout.readline()
    assert -signal.SIGTERM == kill(follower, signal.SIGTERM)
    kill(runner, signal.SIGTERM)
