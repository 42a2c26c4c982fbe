from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import pytest

from jobmeter.cluster.storage import SampleFile, path_of, stored_ids
from jobmeter.journal.writer import JournalWriter
from jobmeter.times import utc
from jobmeter.units import text
from tests.cli.listing import Commands
from tests.running import environment
from tests.runs import DESCRIBED, record, windows
from tests.store.kept import header, ids, journal_of, opened
from tests.terminal import Terminal, visible


def aged(*days: int) -> list[Any]:
    """A run of each age."""
    return [{**record(f"old{age}"), "started": utc(time.time() - age * 86400)} for age in days]


def test_runs_older_than_said_go_with_their_files(jobmeter: Commands) -> None:
    done = jobmeter.keep(*aged(1, 89, 91, 200))("gc", "--older-than", "90d")
    assert (0, True) == (done.code, done.err.startswith("jobmeter: 2 runs: freed "))
    assert ["old1", "old89"] == ids(opened(jobmeter.folder))
    assert {"old1.jsonl", "old89.jsonl"} == set(os.listdir(jobmeter.folder / "journal"))


def test_a_dry_run_only_reports(jobmeter: Commands) -> None:
    size = journal_of(jobmeter.keep(*aged(1, 200)).folder, "old200").stat().st_size
    report = json.loads(jobmeter("gc", "--older-than", "90d", "--dry-run", "--json").out)
    assert {"runs": 1, "cluster_reports": 0, "bytes": size} == report
    assert ["old1", "old200"] == ids(opened(jobmeter.folder))


def test_with_their_summary_kept_runs_lose_only_their_course(jobmeter: Commands) -> None:
    runs = aged(1, 200)
    jobmeter.keep(*runs)("gc", "--older-than", "90d", "--keep-summary")
    store = opened(jobmeter.folder)
    assert (runs, ["old1", "old200"]) == ([store.record(run["id"]) for run in runs], ids(store))
    assert [3, 0] == [len(store.journal(run["id"]).windows) for run in runs]


@pytest.mark.parametrize("summary", [[], ["--keep-summary"]])
def test_a_file_of_many_runs_is_written_anew_with_those_that_stay(jobmeter: Commands, summary: list[str]) -> None:
    runs = aged(200, 1, 300, 2)
    store = opened(jobmeter.folder)
    store.add_all((run, windows(4), DESCRIBED) for run in runs)
    store.relabel("old1", {"a": "b"})
    store.remove("old2")
    jobmeter("gc", "--older-than", "90d", *summary)
    again = opened(jobmeter.folder)
    assert (["old1", "old200", "old300"] if summary else ["old1"]) == ids(again)
    assert (windows(4), {"a": "b"}) == (again.journal("old1").windows, again.labels("old1"))
    assert b"old2" not in next((jobmeter.folder / "journal").iterdir()).read_bytes().replace(b"old200", b"")
    assert [[]] * len(ids(again)[1:]) == [again.journal(run_id).windows for run_id in ids(again)[1:]]


def test_an_old_run_that_still_runs_is_left_alone(jobmeter: Commands) -> None:
    writer = JournalWriter(str(jobmeter.folder), "eee6")
    alive = {"writer": {"pid": os.getpid()}, "host": {"name": os.uname().nodename}}
    writer.begin(header("eee6", **alive, started=utc(time.time() - 1e7)))
    assert "jobmeter: 0 runs: freed 0 B\n" == jobmeter("gc", "--older-than", "1d").err
    writer.close()
    assert ["eee6"] == ids(opened(jobmeter.folder))


def watched(jobmeter: Commands, cluster_id: str, days: int) -> SampleFile:
    """The samples of a cluster that this process began to watch so many days ago."""
    started = utc(time.time() - days * 86400)
    about = {"id": cluster_id, "engine": "local", "address": "here", "started": started, "interval_seconds": 5.0}
    return SampleFile(str(jobmeter.folder), about)


def test_clusters_that_were_watched_longer_ago_go_with_the_runs(jobmeter: Commands) -> None:
    for cluster_id, days in (("new", 89), ("old", 91), ("older", 200)):
        watched(jobmeter, cluster_id, days).end({"ended": utc(time.time())})
    jobmeter.keep(*aged(1, 200))
    size = sum(os.path.getsize(path_of(str(jobmeter.folder), each)) for each in ("old", "older"))
    size += journal_of(jobmeter.folder, "old200").stat().st_size
    would = json.loads(jobmeter("gc", "--older-than", "90d", "--dry-run", "--json").out)
    assert ({"runs": 1, "cluster_reports": 2, "bytes": size}, 3) == (would, len(stored_ids(str(jobmeter.folder))))
    done = jobmeter("gc", "--older-than", "90d")
    assert (0, f"jobmeter: 1 run and 2 cluster reports: freed {text(size, 'bytes')}\n") == (done.code, done.err)
    assert (["new"], ["old1"]) == (stored_ids(str(jobmeter.folder)), ids(opened(jobmeter.folder)))


def test_with_summaries_kept_reports_of_clusters_stay(jobmeter: Commands) -> None:
    watched(jobmeter, "old", 200).end({"ended": utc(time.time())})
    done = jobmeter("gc", "--older-than", "90d", "--keep-summary")
    assert ("jobmeter: the time series of 0 runs: freed 0 B\n", ["old"]) == (done.err, stored_ids(str(jobmeter.folder)))


def test_an_age_must_be_given(jobmeter: Commands) -> None:
    assert (2, True) == ((done := jobmeter("gc")).code, "--older-than" in done.err)


def test_on_a_terminal_it_shows_how_many_files_it_has_done(jobmeter: Commands) -> None:
    folder = jobmeter.keep(*aged(100, 200)).folder
    words = [sys.executable, "-m", "jobmeter", "gc", "--store", str(folder), "--older-than", "90d"]
    shown = Terminal(words, environment(), columns=120).finish()
    assert (0, True) == (shown.code, "2 of 2 files" in shown.text)
    assert 2 == len(visible(shown.text))  # one line, and what follows it
