from __future__ import annotations

import os
from pathlib import Path

from jobmeter.journal.writer import JournalWriter
from tests.cli.listing import Commands
from tests.store.kept import header, ids, opened


def test_runs_are_removed_by_any_of_their_names(jobmeter: Commands) -> None:
    done = jobmeter.keep()("rm", "aaa", "train", "last")
    assert (0, "jobmeter: removed aaa1\njobmeter: removed aab2\njobmeter: removed ddd5\n") == (done.code, done.err)
    assert ["ccc4", "bbb3"] == ids(opened(jobmeter.folder))


def test_a_run_there_is_not_removes_nothing(jobmeter: Commands) -> None:
    done = jobmeter.keep()("rm", "aaa1", "zzz")
    assert (2, 5) == (done.code, len(ids(opened(jobmeter.folder))))


def test_a_run_that_still_runs_is_left_alone(jobmeter: Commands) -> None:
    writer = JournalWriter(str(jobmeter.keep().folder), "eee6")
    writer.begin(header("eee6", writer={"pid": os.getpid()}, host={"name": os.uname().nodename}))
    done = jobmeter("rm", "aaa1", "eee6")
    writer.close()
    assert (2, "jobmeter: run eee6 is still running; end it first\n") == (done.code, done.err)
    assert Path(writer.path).exists()
    assert 6 == len(ids(opened(jobmeter.folder)))
