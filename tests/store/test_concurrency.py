"""Many who write and several who read at once: nothing lost, nothing blocked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobmeter.store.index.database import open_index
from tests.running import ROOT
from tests.store.kept import five, ids, kept, opened
from tests.waiting import LONG

WRITERS = 16
SECONDS = 5.0
LOOP = 'end=$(( $(date +%s) + {seconds} )); while [ $(date +%s) -lt $end ]; do {command} || echo "failed: $?"; done'


def loop(command: str, folder: Path) -> subprocess.Popen[str]:
    """The command over and over, for some seconds."""
    settings = {**os.environ, "JOBMETER_STORE": str(folder), "PYTHONPATH": f"{ROOT}/src"}
    line = LOOP.format(seconds=int(SECONDS), command=command.replace("jobmeter", f"{sys.executable} -m jobmeter"))
    return subprocess.Popen(
        ["bash", "-c", line], env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_sixteen_writers_and_three_readers_lose_nothing_and_meet_no_lock(tmp_path: Path) -> None:
    writers = [loop("jobmeter run --quiet --name w -- true && echo ran", tmp_path) for _ in range(WRITERS)]
    readers = [loop(f"jobmeter {command}", tmp_path) for command in ("ls --json", "stats --json", "ls")]
    outputs = [process.communicate(timeout=LONG) for process in (*writers, *readers)]
    ran = sum(out.count("ran\n") for out, _ in outputs[:WRITERS])
    assert [""] * WRITERS == [err for _, err in outputs[:WRITERS]]
    assert [] == [out for out, _ in outputs if "failed" in out]
    assert [] == [err for _, err in outputs if "lock" in err or "Traceback" in err]
    store = opened(tmp_path)
    assert ran == len(ids(store, limit=None)) == len(os.listdir(tmp_path / "journal"))
    assert {"completed"} == {row["status"] for row in store.runs()}
    assert ran >= WRITERS


def test_a_reader_sees_a_run_as_soon_as_it_has_ended(tmp_path: Path) -> None:
    settings = {**os.environ, "JOBMETER_STORE": str(tmp_path), "PYTHONPATH": f"{ROOT}/src"}
    other = loop("jobmeter run --quiet -- true", tmp_path)
    for count in range(1, 6):
        for words in (["run", "--quiet", "--name", "mine", "--", "true"], ["ls", "--json", "mine"]):
            command = [sys.executable, "-m", "jobmeter", *words]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
        assert [count, ["completed"] * count] == [
            len(json.loads(done.stdout)),
            [row["status"] for row in json.loads(done.stdout)],
        ]
    other.kill()
    other.communicate()


def test_two_who_find_a_damaged_index_at_once_both_answer_right(tmp_path: Path) -> None:
    from tests.store.kept import five, kept

    kept(tmp_path, *five())
    settings = {**os.environ, "JOBMETER_STORE": str(tmp_path), "PYTHONPATH": f"{ROOT}/src"}
    for _ in range(3):
        (tmp_path / "index.db").write_bytes(os.urandom(8192))
        command = [sys.executable, "-m", "jobmeter", "ls", "--json"]
        readers = [
            subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        outputs = [process.communicate() for process in readers]
        assert [(5, "")] * 4 == [(len(json.loads(out)), err) for out, err in outputs]


@pytest.mark.parametrize("words", [("label", "aaa1", "a=b"), ("rm", "--yes", "aaa1"), ("gc", "--older-than", "1d")])
def test_a_command_that_waits_for_the_lock_of_the_index_says_so(tmp_path: Path, words: tuple[str, ...]) -> None:
    kept(tmp_path, *five())
    other = open_index(str(tmp_path / "index.db"))
    other.exec_driver_sql("BEGIN IMMEDIATE")
    command = [sys.executable, "-m", "jobmeter", *words, "--store", str(tmp_path)]
    settings = {**os.environ, "PYTHONPATH": f"{ROOT}/src"}
    with subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as waits:
        assert waits.stderr is not None
        lines = iter(waits.stderr.readline, "")
        assert any(
            line == f"jobmeter: {tmp_path}/index.db: another program holds its lock; waiting for it\n" for line in lines
        )
        other.exec_driver_sql("ROLLBACK")
        rest = waits.stderr.read()
        assert waits.wait(LONG) == 0, rest
    assert "holds its lock" not in rest
