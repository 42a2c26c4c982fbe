from __future__ import annotations

import gc
import json
import os
import queue
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.engines.contract import Ended, Engine, Measure, Task, Token
from jobmeter.engines.local import LocalEngine
from jobmeter.journal.reader import read_journals
from jobmeter.journal.writer import JournalFile, RunJournal
from jobmeter.model import Record
from tests.workflow.live import LONG, Place, lives, running_in


class Running:
    """An engine, and the ends it reported: it is the receiver."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder = folder
        self.warnings: list[str] = []
        self.tokens: dict[int, Token] = {}
        self.journal: RunJournal = JournalFile(f"{folder}/journal.jsonl", {})
        self._ends: queue.Queue[Ended | Exception] = queue.Queue()
        self.warn, self.ended, self.broke = self.warnings.append, self._ends.put, self._ends.put
        self.engine = engine
        engine.open(self)

    def keep_token(self, task: Task, token: Token) -> None:
        self.tokens[task.number] = json.loads(json.dumps(token))

    def start(self, script: str, number: int = 1, **more: Any) -> None:
        fields = {
            "number": number,
            "attempt": 1,
            "name": f"job{number}",
            "command": ["sh", "-c", script],
            "directory": str(self.folder),
            "environment": {},
            "stdout": f"{self.folder}/{number}.out",
            "stderr": f"{self.folder}/{number}.err",
            "workflow": {"id": "w", "name": "w", "run_id": 1, "job_id": number, "attempt": 1},
            "measure": Measure(keep_windows=False),
        }
        self.engine.start(Task(**{**fields, **more}))

    def end(self) -> Ended | Exception:
        return self._ends.get(timeout=LONG)

    def status(self) -> str:
        """How the next that ends did."""
        return str(self.record()["outcome"]["status"])

    def record(self) -> Record:
        """The record of the next that ends."""
        ended = self.end()
        assert isinstance(ended, Ended), ended
        assert ended.record is not None
        return ended.record

    def nothing_more(self) -> bool:
        return self._ends.empty()


@pytest.fixture
def running(place: Place, tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path, place.load_engine())
    yield made
    made.engine.cancel(at_once=True)
    made.engine.close()
    assert made.nothing_more()
    assert [] == running_in(tmp_path)


def test_a_job_has_logs_of_its_own_and_nothing_to_read(running: Running, tmp_path: Path) -> None:
    running.start("cat; echo out; echo err >&2; exit 3")
    assert {"status": "failed", "exit_code": 3, "signal": None} == running.record()["outcome"]
    assert "out\n" == (tmp_path / "1.out").read_text()
    assert "err\n" == (tmp_path / "1.err").read_text()


def test_what_a_job_leaves_running_is_ended_with_it(running: Running, place: Place) -> None:
    running.start("setsid sh -c 'echo $$ >pid; exec sleep 60' & while [ ! -s pid ]; do sleep 0.01; done")
    assert "completed" == running.status()
    assert not lives(place.await_running("pid"))


@pytest.mark.parametrize(
    ("more", "code", "why"),
    [
        ({"command": ["no-such-program"]}, 127, "no-such-program: command not found"),
        ({"command": ["./no-such-file"]}, 127, "./no-such-file: no such file or directory"),
        ({"command": ["./plain-file"]}, 126, "plain-file: permission denied (not executable)"),
        ({"directory": "/no/such/place"}, 125, "/no/such/place: there is no such directory to run in"),
        ({"environment": {"NUMBER": 1}}, 125, "TypeError"),
    ],
)
def test_a_job_that_cannot_begin_has_failed_and_its_log_says_why(
    running: Running, tmp_path: Path, more: dict[str, Any], code: int, why: str
) -> None:
    (tmp_path / "plain-file").touch(mode=0o644)
    running.start("true", **more)
    ended = running.end()
    assert isinstance(ended, Ended)
    assert ended.record is not None
    assert {"status": "failed", "exit_code": code, "signal": None} == ended.record["outcome"]
    assert why in (ended.why or "")
    assert why in (tmp_path / "1.err").read_text()
    journals = read_journals(running.journal.path)
    assert [ended.record] == [journal.record for journal in journals if journal.record is not None]


def test_what_cannot_even_be_recorded_is_handed_to_whoever_waits(running: Running) -> None:
    # JSON has no word for it, so there can be no header and no record.
    running.start("sleep 60", requirement=object())
    assert isinstance(running.end(), Exception)


def test_logs_that_cannot_be_made_fail_their_job_alone(running: Running, tmp_path: Path) -> None:
    (tmp_path / "1.out").mkdir()
    running.start("true", 1)
    running.start("true", 2)
    assert ["completed", "failed"] == sorted([running.status(), running.status()])


def test_after_cancel_nothing_begins(running: Running, tmp_path: Path) -> None:
    running.engine.cancel()
    running.start("touch began")
    assert "cancelled" == running.status()
    assert not (tmp_path / "began").exists()


@pytest.mark.parametrize("seed", range(5))
def test_jobs_that_are_cancelled_while_they_start_all_end(running: Running, seed: int) -> None:
    pause = random.Random(seed).uniform(0.0, 0.15)
    for number in range(40):
        running.start("exec sleep 60", number)
    time.sleep(pause)
    running.engine.cancel()
    assert ["cancelled"] * 40 == [running.status() for _ in range(40)], f"cancelled after {pause} s"


def test_a_job_that_exits_with_0_on_sigterm_is_cancelled_all_the_same(running: Running, place: Place) -> None:
    running.start("trap 'echo bye; exit 0' TERM; echo $$ >pid; while :; do sleep 0.05; done")
    place.await_running("pid")
    running.engine.cancel()
    assert "cancelled" == running.status()
    assert "bye\n" == (place.folder / "1.out").read_text()


def test_one_that_ignores_sigterm_ends_when_that_is_skipped(running: Running, place: Place) -> None:
    running.start("trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done")
    place.await_running("pid")
    running.engine.cancel()
    assert running.nothing_more()
    running.engine.cancel(at_once=True)
    assert "cancelled" == running.status()


def test_a_job_whose_shepherd_someone_killed_is_ended_with_the_others(running: Running, place: Place) -> None:
    for number in (1, 2, 3):
        running.start("echo $$ >>pids; exec sleep 60", number)
    pids = [int(line) for line in place.await_lines("pids", 3)]
    shepherd = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(shepherd, 9)
    running.engine.cancel()
    assert ["cancelled"] * 3 == [running.status() for _ in range(3)]
    assert not any(map(lives, pids))


def test_a_job_whose_shepherd_someone_killed_keeps_its_place_until_it_has_ended(running: Running, place: Place) -> None:
    running.start("echo $$ >pid; while [ ! -e end ]; do sleep 0.01; done; exit 4")
    pid = place.await_running("pid")
    os.kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]), 9)
    assert running.nothing_more()
    (place.folder / "end").touch()
    record = running.record()
    assert not lives(pid)
    assert record["provenance"]["shepherd_killed"]
    # Before Linux 6.15 nobody but its new parent learns it.
    assert record["outcome"]["exit_code"] in (4, None)


def test_a_job_has_no_terminal_and_is_out_of_reach_of_our_group(running: Running, place: Place) -> None:
    running.start("ps -o sid= -p $$ >sid")
    running.status()
    assert os.getsid(0) != int(place.lines("sid")[0])


def test_levels_tell_what_running_jobs_use_and_nothing_after(running: Running, place: Place) -> None:
    running.start("touch began; while [ ! -e end ]; do sleep 0.01; done", 7)
    while 7 not in running.engine.levels():
        time.sleep(0.01)
    assert running.engine.levels()[7]["proc_rss_total"]
    (place.folder / "end").touch()
    running.status()
    assert {} == running.engine.levels()


def test_hundreds_of_jobs_leave_no_descriptor_open(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    (tmp_path / "first").mkdir()
    first = Running(tmp_path / "first", LocalEngine())
    first.start("exec true")
    assert "completed" == first.status()
    first.engine.close()
    gc.collect()  # what other tests left open
    before = descriptors()  # with what is opened once and kept
    running = Running(tmp_path, LocalEngine())
    for number in range(300):
        running.start("exec true", number)
    assert ["completed"] * 300 == [running.status() for _ in range(300)]
    running.engine.close()
    assert descriptors() <= before
