"""Removing what was stored of clusters that were watched long ago."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobmeter.cluster.pruning import PrunedSamples, prune_samples
from jobmeter.cluster.storage import SampleFile, stored_ids
from jobmeter.errors import StoreError
from jobmeter.times import utc
from tests.running import environment
from tests.waiting import wait_for

DAY = 86400.0
NONE = PrunedSamples(0, 0)


def begun(store: Path, cluster_id: str, *, days: float = 100) -> SampleFile:
    """The samples of a monitor in this process."""
    started = utc(time.time() - days * DAY)
    about = {"id": cluster_id, "engine": "local", "address": "here", "started": started, "interval_seconds": 5.0}
    return SampleFile(str(store), about)


def rewritten(path: str, **changes: object) -> None:
    """The same file with another header."""
    header, *rest = Path(path).read_bytes().splitlines(keepends=True)
    Path(path).write_bytes(json.dumps({**json.loads(header), **changes}).encode() + b"\n" + b"".join(rest))


def prune(store: Path, *, dry_run: bool = False) -> PrunedSamples:
    return prune_samples(str(store), time.time() - 90 * DAY, dry_run=dry_run)


def test_what_this_process_still_writes_stays_and_goes_when_it_has_its_end(tmp_path: Path) -> None:
    file = begun(tmp_path, "a")
    assert (NONE, ["a"]) == (prune(tmp_path), stored_ids(str(tmp_path)))
    file.end({"ended": utc(time.time()), "notes": ["a note"]})
    size = os.path.getsize(file.path)
    assert (PrunedSamples(1, size), ["a"]) == (prune(tmp_path, dry_run=True), stored_ids(str(tmp_path)))
    assert (PrunedSamples(1, size), []) == (prune(tmp_path), stored_ids(str(tmp_path)))


def test_what_a_killed_monitor_left_goes_and_what_a_running_one_writes_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jobmeter", "cluster", "--store", str(tmp_path), "--interval", "0.2s", "--quiet"]
    with subprocess.Popen([*command, "--", "cat"], stdin=subprocess.PIPE, env=environment()) as monitor:
        try:
            wait_for(lambda: any(path.stat().st_size for path in tmp_path.glob("cluster/*.jsonl")), "samples")
            (path,) = tmp_path.glob("cluster/*.jsonl")
            far = time.time() + DAY  # by then it began long ago
            assert NONE == prune_samples(str(tmp_path), far)
        finally:
            monitor.kill()
    assert (1, False) == (prune_samples(str(tmp_path), far).files, path.exists())


def test_one_that_another_machine_writes_stays_while_it_grows(tmp_path: Path) -> None:
    file = begun(tmp_path, "a")
    rewritten(file.path, writer={"pid": 1, "host": "elsewhere"})
    assert NONE == prune(tmp_path)
    os.utime(file.path, (0, time.time() - DAY))
    assert 1 == prune(tmp_path).files


def test_a_process_that_only_has_the_same_pid_is_no_monitor(tmp_path: Path) -> None:
    file = begun(tmp_path, "a")
    rewritten(file.path, writer={"pid": os.getpid(), "host": os.uname().nodename, "start": 1})
    assert 1 == prune(tmp_path).files


def test_of_this_age_only_those_that_began_longer_ago_go(tmp_path: Path) -> None:
    for cluster_id, days in (("new", 89.9), ("old", 90.1)):
        begun(tmp_path, cluster_id, days=days).end({})
    assert (1, ["new"]) == (prune(tmp_path).files, stored_ids(str(tmp_path)))


def test_what_is_no_file_of_samples_is_left_alone(tmp_path: Path) -> None:
    file = begun(tmp_path, "a")
    file.end({})
    folder = tmp_path / "cluster"
    mine = tmp_path / "mine.jsonl"
    os.rename(file.path, mine)
    (folder / "link.jsonl").symlink_to(mine)
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "other.jsonl").write_bytes(b'{"schema":"other/1","started":"2001-01-01T00:00:00.000Z"}\n')
    (folder / "undated.jsonl").write_bytes(b'{"schema":"jobmeter.cluster-samples/1","started":7}\n')
    (folder / "notes.txt").write_bytes(mine.read_bytes())
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    before = sorted(os.listdir(folder))
    assert (NONE, before, True) == (prune(tmp_path), sorted(os.listdir(folder)), mine.exists())


def test_without_any_cluster_there_is_nothing_to_remove(tmp_path: Path) -> None:
    assert NONE == prune(tmp_path)


def test_where_the_folder_should_be_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "cluster").write_text("")
    with pytest.raises(StoreError, match=r"cluster: Not a directory"):
        prune(tmp_path)
