from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jobmeter.journal.writer import JournalWriter
from tests.cli.listing import Commands
from tests.running import environment
from tests.store.kept import header, ids, opened
from tests.terminal import Terminal


def removed(count: int) -> str:
    return f"jobmeter: removed {count} run{'s' * (count != 1)}\n"


def test_runs_are_removed_by_any_of_their_names(jobmeter: Commands) -> None:
    done = jobmeter.keep()("rm", "--yes", "aaa", "train", "last", "aaa1")
    assert (0, True) == (done.code, done.err.endswith(removed(3)))
    assert ["aaa1", "aab2", "ddd5"] == [line.split()[0] for line in done.err.splitlines()[:-1]]
    assert ["ccc4", "bbb3"] == ids(opened(jobmeter.folder))


def test_a_glob_is_all_runs_of_such_names(jobmeter: Commands) -> None:
    names = {row["name"]: row["id"] for row in opened(jobmeter.keep().folder).runs()}
    done = jobmeter("rm", "--yes", "tr*")
    left = [row["name"] for row in opened(jobmeter.folder).runs()]
    assert (0, True) == (done.code, any(name.startswith("tr") for name in names))
    assert [] == [name for name in left if name.startswith("tr")]
    assert len(left) > 0


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (["--status", "completed"], []),
        (["--where", 'id = "bbb3"'], ["ddd5", "ccc4", "aab2", "aaa1"]),
        (["--name", "nobody"], None),
    ],
)
def test_the_filters_are_those_of_ls(jobmeter: Commands, filters: list[str], left: list[str] | None) -> None:
    listed = [line.split()[0] for line in jobmeter.keep()("ls", *filters).out.splitlines()[1:]]
    before = ids(opened(jobmeter.folder))
    done = jobmeter("rm", "--yes", *filters)
    assert 0 == done.code
    after = ids(opened(jobmeter.folder))
    assert [run for run in before if run not in listed] == after
    if left is None:
        assert ("jobmeter: no run matches: nothing was removed\n", before) == (done.err, after)
    elif left:
        assert left == after


def test_a_dry_run_only_shows_what_would_go(jobmeter: Commands) -> None:
    done = jobmeter.keep()("rm", "--dry-run", "--where", "wall_seconds >= 0")
    assert (0, 5) == (done.code, len(ids(opened(jobmeter.folder))))
    assert done.err.endswith(f"jobmeter: {len(done.err.splitlines()) - 1} runs would be removed\n")


def test_without_a_terminal_nothing_goes_unless_yes_is_said(jobmeter: Commands) -> None:
    done = jobmeter.keep()("rm", "aaa1")
    advice = "nothing was removed: there is no terminal to ask on. To remove 1 run: jobmeter rm --yes …"
    assert (2, f"jobmeter: {advice}") == (done.code, done.err.splitlines()[-1])
    assert 5 == len(ids(opened(jobmeter.folder)))


@pytest.mark.parametrize(("answer", "code", "count"), [("y\r", 0, 0), ("yes\r", 0, 0), ("n\r", 1, 5), ("\r", 1, 5)])
def test_on_a_terminal_it_asks_before_it_removes(jobmeter: Commands, answer: str, code: int, count: int) -> None:
    words = [sys.executable, "-m", "jobmeter", "rm", "--store", str(jobmeter.keep().folder), "--name", "*"]
    session = Terminal(words, environment(), columns=120)
    session.wait_for("Remove 5 runs? [y/N]")
    session.press(answer)
    shown = session.finish()
    assert (code, "aaa1" in shown.text) == (shown.code, True)
    assert count == len(ids(opened(jobmeter.folder)))


def test_ctrl_c_at_the_question_removes_nothing(jobmeter: Commands) -> None:
    words = [sys.executable, "-m", "jobmeter", "rm", "--store", str(jobmeter.keep().folder), "--name", "*"]
    session = Terminal(words, environment(), columns=120)
    session.wait_for("[y/N]")
    session.press("\x03")
    shown = session.finish()
    assert (130, False, 5) == (shown.code, "Traceback" in shown.text, len(ids(opened(jobmeter.folder))))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "name the runs to remove, or filter them: jobmeter rm RUN, jobmeter rm --name 'test*'"),
        (["aaa1", "--name", "x"], "name runs or filter them, not both"),
        (["zzz*"], "no run is called 'zzz*'. `jobmeter ls` lists runs."),
        (["aaa1", "zzz"], "there is no run 'zzz': it is not a name, nor the beginning of an id"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_removes_nothing(jobmeter: Commands, words: list[str], why: str) -> None:
    done = jobmeter.keep()("rm", "--yes", *words)
    assert (2, 1, 5) == (done.code, len(done.err.splitlines()), len(ids(opened(jobmeter.folder))))
    assert done.err.startswith(f"jobmeter: {why}")


def running(jobmeter: Commands) -> JournalWriter:
    """A run that has not ended."""
    writer = JournalWriter(str(jobmeter.keep().folder), "eee6")
    writer.begin(header("eee6", writer={"pid": os.getpid()}, host={"name": os.uname().nodename}))
    return writer


def test_a_run_that_still_runs_is_left_alone(jobmeter: Commands) -> None:
    writer = running(jobmeter)
    done = jobmeter("rm", "--yes", "aaa1", "eee6")
    writer.close()
    assert (2, "jobmeter: run eee6 is still running; end it first") == (done.code, done.err.splitlines()[-1])
    assert Path(writer.path).exists()
    assert 6 == len(ids(opened(jobmeter.folder)))


def test_of_many_the_one_that_still_runs_stays(jobmeter: Commands) -> None:
    writer = running(jobmeter)
    done = jobmeter("rm", "--yes", "--name", "*")
    writer.close()
    assert (0, "jobmeter: 1 of them still runs and stays") == (done.code, done.err.splitlines()[0])
    assert ["eee6"] == ids(opened(jobmeter.folder))
