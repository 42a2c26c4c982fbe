"""What holds for every engine: the one on this machine, one whose jobs run in other processes, one with a broker."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from jobmeter.engines.contract import Capacity, Ended, LeftTask, Measure, Task
from jobmeter.model import Requirement
from tests.engines.running import Running
from tests.workflow.live import ON_BOTH_ENGINES, ON_EVERY_ENGINE, Place, lives, wait_for


def journal_lines(running: Running) -> list[dict[str, Any]]:
    lines = map(json.loads, Path(running.journal.path).read_text().splitlines())
    return [line for line in lines if isinstance(line, dict)]


def journal_records(running: Running) -> list[Any]:
    return [line["record"] for line in journal_lines(running) if "record" in line]


@ON_EVERY_ENGINE
def test_a_job_has_logs_of_its_own_and_nothing_to_read(running: Running, tmp_path: Path) -> None:
    running.start("cat; echo out; echo err >&2; exit 3")
    assert {"status": "failed", "exit_code": 3, "signal": None} == running.record()["outcome"]
    assert "out\n" == (tmp_path / "1.out").read_text()
    assert "err\n" == (tmp_path / "1.err").read_text()


@ON_EVERY_ENGINE
def test_what_a_job_leaves_running_is_ended_with_it(running: Running, place: Place) -> None:
    running.start("setsid sh -c 'echo $$ >pid; exec sleep 60' & while [ ! -s pid ]; do sleep 0.01; done")
    assert "completed" == running.status()
    assert not lives(place.await_running("pid"))


@ON_EVERY_ENGINE
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
    assert [ended.record] == journal_records(running)


@ON_EVERY_ENGINE
def test_logs_that_cannot_be_made_fail_their_job_alone(running: Running, tmp_path: Path) -> None:
    (tmp_path / "1.out").mkdir()
    running.start("true", 1)
    running.start("true", 2)
    assert ["completed", "failed"] == sorted([running.status(), running.status()])


@ON_EVERY_ENGINE
def test_after_cancel_nothing_begins(running: Running, tmp_path: Path) -> None:
    running.engine.cancel()
    running.start("touch began")
    assert "cancelled" == running.status()
    assert not (tmp_path / "began").exists()


@ON_EVERY_ENGINE
def test_a_job_that_exits_with_0_on_sigterm_is_cancelled_all_the_same(running: Running, place: Place) -> None:
    running.start("trap 'echo bye; exit 0' TERM; echo $$ >pid; while :; do sleep 0.05; done")
    place.await_running("pid")
    running.engine.cancel()
    assert "cancelled" == running.status()
    assert "bye\n" == (place.folder / "1.out").read_text()


@ON_EVERY_ENGINE
def test_one_that_ignores_sigterm_ends_when_that_is_skipped(running: Running, place: Place) -> None:
    running.start("trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done")
    place.await_running("pid")
    running.engine.cancel()
    assert running.nothing_more()
    running.engine.cancel(at_once=True)
    assert "cancelled" == running.status()


@ON_EVERY_ENGINE
@pytest.mark.parametrize("has_limit", [False, True])
def test_one_that_does_not_heed_sigterm_is_not_sent_it(running: Running, place: Place, has_limit: bool) -> None:
    limit: dict[str, Any] = {"requirement": Requirement(runtime_seconds=1.0), "enforce": True} if has_limit else {}
    command = "trap 'echo asked; exit 0' TERM; echo $$ >pid; while :; do sleep 0.05; done"
    running.start(command, heeds_sigterm=False, **limit)
    if not has_limit:
        place.await_running("pid")
        running.engine.cancel()
    outcome = running.record()["outcome"]
    assert ("timeout" if has_limit else "cancelled", 9) == (outcome["status"], outcome["signal"])
    assert "" == (place.folder / "1.out").read_text()


@ON_EVERY_ENGINE
def test_levels_show_what_running_jobs_use_and_nothing_after(running: Running, place: Place) -> None:
    running.start("touch began; while [ ! -e end ]; do sleep 0.01; done", 7)
    wait_for(lambda: bool(running.engine.levels().get(7, {}).get("proc_rss_total")), "a level of its memory")
    (place.folder / "end").touch()
    running.status()
    assert {} == running.engine.levels()


@ON_EVERY_ENGINE
def test_one_task_can_be_cancelled_and_the_others_go_on(running: Running, place: Place) -> None:
    for number in (1, 2):
        running.start("echo $$ >>pids; until [ -e end ]; do sleep 0.01; done", number)
    place.await_lines("pids", 2)
    running.engine.cancel(1)
    record = running.record()
    assert ("job1", "cancelled") == (record["name"], record["outcome"]["status"])
    (place.folder / "end").touch()
    assert "completed" == running.status()


@ON_BOTH_ENGINES
def test_one_that_is_cancelled_as_soon_as_it_is_started_ends_and_its_next_attempt_runs(running: Running) -> None:
    for _ in range(5):
        running.start("exec sleep 60")
        running.engine.cancel(1)
        assert "cancelled" == running.status()
    running.start("true")
    assert "completed" == running.status()


@ON_BOTH_ENGINES
def test_a_token_is_kept_before_a_task_runs_and_by_it_another_engine_finds_and_ends_the_task(
    running: Running, place: Place
) -> None:
    running.start("echo $$ >pid; exec sleep 60", 7)
    pid = place.await_running("pid")
    other = Running(place.folder / "packages", place.load_engine())
    left = LeftTask(7, 1, running.tokens[7], wanted=True)
    assert 1 == other.engine.recover([left]).ended
    assert not lives(pid)
    assert 0 == other.engine.recover([left]).ended
    other.engine.close()
    running.end()


@ON_EVERY_ENGINE
def test_the_header_and_the_record_of_a_task_are_in_the_journal(running: Running) -> None:
    running.start("exit 3")
    record = running.record()
    assert [record] == journal_records(running)
    (header,) = [line for line in journal_lines(running) if "workflow" in line]
    assert record["id"] == header["id"]
    assert {"id": "w", "name": "w", "run_id": 1, "job_id": 1, "attempt": 1} == header["workflow"]


TASK = Task(
    number=3,
    attempt=2,
    name="train",
    command=["python", "train.py"],
    directory="/data",
    environment={"SEED": "1"},
    stdout="/logs/out",
    stderr="/logs/err",
    workflow={"id": "w", "job_id": 3},
    requirement=Requirement(cpus=2, memory_bytes=2**30),
    enforce=True,
    outputs=("/data/model",),
    labels={"team": "a"},
    measure=Measure(0.5, 5.0, ["proc_*"], False),
    container={"image": "python:3.12", "mounts": [{"source": "/data", "target": "/data", "read_only": False}]},
)


def test_a_task_is_plain_data_that_json_and_pickle_give_back_as_it_was() -> None:
    assert TASK == Task.from_json(json.loads(json.dumps(TASK.as_json())))
    assert TASK == pickle.loads(pickle.dumps(TASK))


def test_bounds_of_a_user_take_the_place_of_those_of_the_engine() -> None:
    assert Capacity(8, 2**30, 0, 5) == Capacity(2, 2**30, 0, 5).bounded(8, None, None)
    assert Capacity(None, None, 4) == Capacity().bounded(None, None, 4)


def test_the_most_that_one_task_may_request_is_bounded_by_the_largest_machine_too() -> None:
    assert Requirement(4, 2**30, None, 1) == Capacity(64, 2**30, 1, largest=Requirement(4, 2**40)).most()
    assert Requirement() == Capacity().most()
