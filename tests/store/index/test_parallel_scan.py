"""Processes that scan journals end with the command that started them, whatever ends it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.journal.writer import SCHEMA
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.store.index import update
from tests.running import ROOT
from tests.runs import record
from tests.store.kept import one_file, opened
from tests.waiting import wait_for

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
KILLS = 50


@pytest.fixture
def large_files(tmp_path: Path) -> Path:
    """A store whose files are larger than what a pipe holds: their scanners wait for the reader."""
    for number in range(3):
        lines: list[Any] = [{"schema": SCHEMA, "shared": {}}]
        for at in range(5000):
            run = record(f"run{number}{at:04}", name=f"job{at % 5}-{'x' * 300}", cpu_seconds=float(at))
            lines += [{"schema": SCHEMA, "id": run["id"], "name": run["name"]}, {"record": run}]
        one_file(tmp_path, f"many{number}", lines)
    return tmp_path


def members(session: int) -> Iterator[int]:
    """The living processes of a session."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                is_member = os.getsid(int(name)) == session and read_stat(THIS_MACHINE, int(name)).state not in "ZX"
            except (OSError, ValueError):
                continue
            if is_member:
                yield int(name)


def start_reader(folder: Path) -> int:
    """A process, in a session of its own, that makes the index with scanners."""
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        (folder / name).unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            opened(folder, [])
        finally:
            os._exit(0)
    return pid


def has_ended(pid: int) -> bool:
    return read_stat(THIS_MACHINE, pid).state == "Z"


def kill_reader(folder: Path, number: signal.Signals, delay: float) -> bool:
    """Kill a reader some time after its first scanner began; returns whether it had scanners then."""
    reader = start_reader(folder)
    try:
        wait_for(lambda: len(list(members(reader))) > 1 or has_ended(reader), "a scanner begins")
        time.sleep(delay)
        had_scanners = len(list(members(reader))) > 1
        os.kill(reader, number)
    finally:
        os.waitpid(reader, 0)
    wait_for(lambda: not list(members(reader)), "all scanners ended")
    return had_scanners


def test_no_scanner_outlives_a_reader_that_is_killed_at_any_moment(
    large_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update, "WORTH_IT", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    chance = random.Random(11)
    kills = [(SIGNALS[attempt % len(SIGNALS)], chance.uniform(0, 0.4)) for attempt in range(KILLS)]
    had_scanners = [kill_reader(large_files, *kill) for kill in kills]
    assert any(had_scanners)


def start_ls(folder: Path) -> subprocess.Popen[str]:
    """`jobmeter ls` that makes the index with scanners; at least one of them runs."""
    body = (
        "import sys\n"
        "from jobmeter.store.index import update\n"
        "from jobmeter.cli.main import entry\n"
        "update.WORTH_IT = 0\n"
        f"sys.argv[1:] = ['ls', '--store', {str(folder)!r}]\n"
        "entry()\n"
    )
    ls = subprocess.Popen(
        [sys.executable, "-c", body], env={**os.environ, "PYTHONPATH": f"{ROOT}/src"}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: len(list(members(ls.pid))) > 1 or has_ended(ls.pid), "a scanner begins")
    return ls


@pytest.mark.parametrize("number", SIGNALS)
def test_no_scanner_outlives_a_killed_ls(large_files: Path, number: signal.Signals) -> None:
    with start_ls(large_files) as ls:
        ls.send_signal(number)
        assert ls.communicate()[1] == ""
    assert ls.returncode == -number
    wait_for(lambda: not list(members(ls.pid)), "all scanners ended")


def test_ctrl_c_ends_ls_and_its_scanners_without_a_traceback(large_files: Path) -> None:
    with start_ls(large_files) as ls:
        os.killpg(ls.pid, signal.SIGINT)
        assert ls.communicate()[1] == ""
    assert ls.returncode == 130
    wait_for(lambda: not list(members(ls.pid)), "all scanners ended")
