from __future__ import annotations

import gc
import json
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobmeter.engines.contract import Capacity, Ended, LeftTask, Recovered, Task
from jobmeter.engines.local import LocalEngine
from jobmeter.engines.task_run import unmeasured_record
from jobmeter.errors import StoreError
from jobmeter.journal.writer import JournalFile
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.store import Selection, open_store
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.directory import new_run
from jobmeter.workflow.listener import Listener, Running
from jobmeter.workflow.plan import Job
from jobmeter.workflow.result import Result
from jobmeter.workflow.resume import fingerprint
from jobmeter.workflow.run import WorkflowRun
from jobmeter.workflow.task_log import StartedTask
from jobmeter.workflow.task_maker import RunOptions
from tests.waiting import wait_for
from tests.workflow.live import ON_BOTH_ENGINES, Place, running_in
from tests.workflow.spec.writing import plan_of

MIB = 2**20
MEET = "touch here.{0}; until [ -e here.{1} ]; do sleep 0.01; done"
"""Ends only where the other runs at the same time."""


def a_run(
    place: Place, text: str, *, cpus: float = 2, gpus: int = 0, enforce: bool = False, **more: Any
) -> WorkflowRun:
    plan = plan_of(place.folder, text)
    directory = new_run(str(place.store), plan.name)
    capacity = Capacity(cpus, 1024 * MIB, gpus)
    directory.keep_plan(plan, capacity, place.engine)
    options = RunOptions(str(place.store), capacity, enforce, engine=place.engine)
    return WorkflowRun(plan, directory, options, **{"engine": place.load_engine(), **more})


def statuses(result: Result) -> dict[str, str]:
    return {attempt.name: attempt.status for attempt in result.attempts}


def most_at_a_time(lines: list[str]) -> int:
    """Of lines that jobs appended, `+ NAME` when they began and `- NAME` before they ended."""
    now = most = 0
    for line in lines:
        now += 1 if line.startswith("+") else -1
        most = max(most, now)
    return most


@ON_BOTH_ENGINES
def test_jobs_that_fit_run_at_the_same_time(place: Place) -> None:
    jobs = f"- {{name: a, command: '{MEET.format('a', 'b')}'}}\n- {{name: b, command: '{MEET.format('b', 'a')}'}}\n"
    result = a_run(place, f"jobs:\n{jobs}").run()
    assert {"a": "completed", "b": "completed"} == statuses(result)
    assert (2, True) == (result.concurrency_peak, result.succeeded)


@ON_BOTH_ENGINES
@pytest.mark.parametrize("requirement", ["cpus: 0.7", "cpus: 0.1, memory: 400m"])
def test_no_more_run_than_fit_what_there_is(place: Place, requirement: str) -> None:
    script = "echo + {i} >>log; sleep 0.02; echo - {i} >>log"
    spec = f"jobs:\n- {{name: 'a_{{i}}', command: '{script}', parameters: {{i: '1:30'}}, resource_requirements: {{{requirement}}}}}"  # noqa: E501
    result = a_run(place, spec, cpus=2).run()
    lines = place.lines("log")
    assert 60 == len(lines)
    assert most_at_a_time(lines) <= 2
    assert (2, True) == (result.concurrency_peak, result.succeeded)


@ON_BOTH_ENGINES
def test_a_job_starts_the_moment_the_last_it_needs_is_done(place: Place) -> None:
    # The slow one, which it does not need, waits for it to begin.
    spec = f"""
jobs:
  - {{name: slow, command: '{MEET.format("slow", "after")}'}}
  - {{name: first, command: 'true'}}
  - {{name: after, command: 'touch here.after', blocked_by: [first]}}
"""
    assert a_run(place, spec).run().succeeded


def test_each_job_sees_the_gpus_that_are_its_own(place: Place) -> None:
    script = (
        "echo $CUDA_VISIBLE_DEVICES >gpus.{i}; touch here.{i}; until [ -e here.1 -a -e here.2 ]; do sleep 0.01; done"
    )
    spec = f"""
jobs:
  - {{name: 'g_{{i}}', command: '{script}', parameters: {{i: [1, 2]}}, resource_requirements: {{cpus: 0.1, gpus: 2}}}}
  - {{name: later, command: 'echo $CUDA_VISIBLE_DEVICES >gpus.later', blocked_by: [g_1, g_2], resource_requirements: {{gpus: 4}}}}
  - {{name: none, command: 'echo $CUDA_VISIBLE_DEVICES >gpus.none'}}
"""  # noqa: E501
    assert a_run(place, spec, gpus=4).run().succeeded
    first, second = (set(place.lines(f"gpus.{i}")[0].split(",")) for i in (1, 2))
    assert {"0", "1", "2", "3"} == first | second
    assert not first & second
    assert "0,1,2,3" == ",".join(sorted(place.lines("gpus.later")[0].split(",")))
    assert [""] == place.lines("gpus.none")


def test_of_gpus_that_we_were_given_ourselves_jobs_get_some(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-7f")
    spec = "jobs:\n- {name: a, command: 'echo $CUDA_VISIBLE_DEVICES >gpus', resource_requirements: {gpus: 2}}"
    assert a_run(place, spec, gpus=2).run().succeeded
    assert {"5", "GPU-7f"} == set(place.lines("gpus")[0].split(","))


class Ears(Listener):
    """Hears all, and says what it heard."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def started(self, running: Running) -> None:
        self.heard.append(f"started {running.job.name}")

    def ended(self, attempt: Attempt, why: str | None, again: Requirement | None) -> None:
        self.heard.append(f"ended {attempt.name} {attempt.status}{' again' if again else ''}")

    def blocked(self, job: Job, by: Job) -> None:
        self.heard.append(f"blocked {job.name} by {by.name}")


FAILING = """
jobs:
  - {name: bad, command: 'exit 3'}
  - {name: near, command: 'true', blocked_by: [bad]}
  - {name: far, command: 'true', blocked_by: [near, good]}
  - {name: good, command: 'true'}
"""


@ON_BOTH_ENGINES
def test_what_needs_a_failed_job_is_blocked_near_and_far_and_the_rest_goes_on(place: Place) -> None:
    ears = Ears()
    result = a_run(place, FAILING, cpus=1, listener=ears).run()
    assert {"bad": "failed", "good": "completed"} == statuses(result)
    assert ({2: 1, 3: 1}, False, 0) == (result.blocked, result.succeeded, result.not_begun)
    assert [
        "started bad", "ended bad failed", "blocked near by bad", "blocked far by bad", "started good",
        "ended good completed",
    ] == ears.heard  # fmt: skip


class Deaf(Listener):
    def started(self, running: Running) -> None:
        raise OSError("the terminal is gone")

    ended = blocked = started  # type: ignore[assignment]


def test_a_listener_that_fails_does_not_stop_the_work(place: Place) -> None:
    warnings: list[str] = []
    result = a_run(place, FAILING, listener=Deaf(), warn=warnings.append).run()
    assert {"bad": "failed", "good": "completed"} == statuses(result)
    assert any("the terminal is gone" in warning for warning in warnings)
    assert len(set(warnings)) == len(warnings)


class Breaking(LocalEngine):
    """An engine whose second task goes wrong in a way that nobody thought of."""

    def _run_task(self, task: Task) -> Ended:
        if task.number == 2:
            raise ArithmeticError("nobody thought of it")
        return super()._run_task(task)


def test_an_engine_that_breaks_ends_the_run_and_leaves_nothing_running(place: Place) -> None:
    spec = "jobs:\n- {name: long, command: sleep 60}\n- {name: broken, command: sleep 60}\n"
    with pytest.raises(ArithmeticError):
        a_run(place, spec, engine=Breaking()).run()
    assert [] == running_in(place.folder)


STOPPABLE = """
jobs:
  - {name: a, command: 'trap "exit 0" TERM; echo >a; while :; do sleep 0.02; done', retry: {times: 3, on: [143, 137]}}
  - {name: b, command: 'echo >b; exec sleep 60', retry: {times: 3, on: [143, 137]}}
  - {name: after_a, command: 'touch began', blocked_by: [a]}
  - {name: after_b, command: 'touch began', blocked_by: [b]}
  - {name: waits, command: 'touch began'}
"""


@ON_BOTH_ENGINES
def test_stop_ends_what_runs_and_nothing_begins_or_is_tried_again(place: Place) -> None:
    run = a_run(place, STOPPABLE)
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(run.run()))
    thread.start()
    place.await_lines("a", 1)
    place.await_lines("b", 1)
    run.stop()
    thread.join()
    (result,) = results
    assert {"a": "cancelled", "b": "cancelled"} == statuses(result)
    assert (True, False, {}, 3) == (result.stopped, result.succeeded, result.blocked, result.not_begun)
    assert not (place.folder / "began").exists()
    assert [] == running_in(place.folder)


@ON_BOTH_ENGINES
def test_one_that_is_stopped_before_it_runs_begins_nothing(place: Place) -> None:
    run = a_run(place, STOPPABLE)
    run.stop()
    result = run.run()
    assert ({}, 5, True) == (statuses(result), result.not_begun, result.stopped)


HOG = "x = b'x' * (150 << 20); import time; time.sleep(0.2)"


@ON_BOTH_ENGINES
def test_a_job_that_ran_out_of_memory_completes_with_more_and_each_attempt_has_what_it_requested(
    place: Place,
) -> None:
    spec = f"""
jobs:
  - name: hog
    command: [python3, -c, "{HOG}"]
    resource_requirements: {{memory: 64m}}
    retry: {{times: 3, grow: {{memory: 2}}}}
"""
    ears = Ears()
    result = a_run(place, spec, enforce=True, listener=ears).run()
    assert ["oom", "oom", "completed"] == [attempt.status for attempt in result.attempts]
    assert [1, 2, 3] == [attempt.attempt for attempt in result.attempts]
    assert [64 * MIB, 128 * MIB, 256 * MIB] == [attempt.memory_bytes for attempt in result.attempts]
    assert result.succeeded
    assert ["ended hog oom again", "ended hog oom again", "ended hog completed"] == ears.heard[1::2]
    kept = open_store(str(place.store), print)
    assert [64 * MIB, 128 * MIB, 256 * MIB] == [
        kept.record(attempt.run)["requirement"]["memory_bytes"] for attempt in result.attempts
    ]


@ON_BOTH_ENGINES
def test_a_job_that_had_all_the_memory_there_is_is_given_up(place: Place) -> None:
    spec = f"""
jobs:
  - name: hog
    command: [python3, -c, "{HOG.replace("150", "1500")}"]
    resource_requirements: {{memory: 800m}}
    retry: {{times: 9}}
"""
    result = a_run(place, spec, enforce=True).run()
    assert [("oom", 800 * MIB), ("oom", 1024 * MIB)] == [(each.status, each.memory_bytes) for each in result.attempts]


@ON_BOTH_ENGINES
def test_a_job_that_ran_out_of_time_completes_with_more(place: Place) -> None:
    spec = """
jobs:
  - name: slow
    command: 'echo $JOBMETER_ATTEMPT >>tries; [ $JOBMETER_ATTEMPT = 3 ] || sleep 60'
    resource_requirements: {runtime: 0.2s}
    retry: {times: 2, grow: {runtime: 10}}
"""
    result = a_run(place, spec, enforce=True).run()
    assert ["timeout", "timeout", "completed"] == [attempt.status for attempt in result.attempts]
    assert [0.2, 2.0, 20.0] == pytest.approx([attempt.runtime_seconds for attempt in result.attempts])
    assert ["1", "2", "3"] == place.lines("tries")


@ON_BOTH_ENGINES
def test_exit_codes_are_tried_again_as_often_as_the_spec_says(place: Place) -> None:
    spec = """
jobs:
  - {name: flaky, command: '[ $JOBMETER_ATTEMPT = 3 ] || exit 75', retry: {times: 2, on: [75]}}
  - {name: hopeless, command: 'exit 75', retry: {times: 2, on: [75]}}
  - {name: other, command: 'exit 1', retry: {times: 2, on: [75]}}
  - {name: nowhere, command: [no-such-program], retry: {times: 1, on: [127]}}
"""
    result = a_run(place, spec).run()
    tries = [attempt.name for attempt in result.attempts]
    assert {"flaky": 3, "hopeless": 3, "other": 1, "nowhere": 2} == {name: tries.count(name) for name in tries}
    assert ["hopeless", "nowhere", "other"] == sorted(attempt.name for attempt in result.failed)


@ON_BOTH_ENGINES
def test_numbers_of_attempts_go_on_where_earlier_ones_ended_and_their_times_begin_anew(place: Place) -> None:
    spec = "jobs:\n- {name: a, command: 'exit 75', retry: {times: 1, on: [75]}}\n"
    first = a_run(place, spec).run()
    second = a_run(place, spec, before=first.attempts).run()
    assert [1, 2, 3, 4] == [attempt.attempt for attempt in (*first.attempts, *second.attempts)]


@ON_BOTH_ENGINES
def test_hundreds_of_jobs_leave_no_descriptor_and_no_thread(place: Place) -> None:
    def held() -> int:
        return len(os.listdir("/proc/self/fd"))

    class Counting(Listener):
        def __init__(self) -> None:
            self.counts: list[int] = []

        def ended(self, attempt: Attempt, why: str | None, again: Requirement | None) -> None:
            self.counts.append(held())

    a_run(place, "jobs: [{name: a, command: 'true'}]").run()
    gc.collect()  # what other tests left open
    before, threads = held(), threading.active_count()
    spec = "jobs:\n- {name: 'a_{i}', command: [\"true\"], parameters: {i: '1:300'}}\n"
    counting = Counting()
    run = a_run(place, spec, listener=counting)
    lock = 1  # each run holds the lock of its directory
    assert run.run().succeeded
    assert held() <= before + lock
    # Of the two at a time, as many at the end as at the beginning; some are being opened while we count.
    assert max(counting.counts[-100:]) <= max(counting.counts[:100]) + 10
    wait_for(lambda: threading.active_count() <= threads, "the end of the threads")


@ON_BOTH_ENGINES
def test_what_ended_survives_a_crash_of_the_machine_though_nothing_else_ends(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long one waits until the short one, which ended before anything was due, is on the disk."""
    sync = JournalFile.sync

    def sync_and_mark(journal: JournalFile) -> None:
        sync(journal)
        if '"outcome"' in Path(journal.path).read_text():
            (place.folder / "synced").touch()

    monkeypatch.setattr(JournalFile, "sync", sync_and_mark)
    spec = """
jobs:
  - {name: short, command: 'true'}
  - {name: long, command: 'until [ -e synced ]; do sleep 0.02; done', resource_requirements: {runtime: 20s}}
"""
    assert a_run(place, spec, enforce=True).run().succeeded


def test_a_store_that_cannot_be_written_is_one_error_and_nothing_starts(place: Place) -> None:
    run = a_run(place, "jobs: [{name: a, command: 'touch began'}]")
    shutil.rmtree(place.store / "journal", ignore_errors=True)
    (place.store / "journal").touch()
    with pytest.raises(StoreError):
        run.run()
    assert not (place.folder / "began").exists()


class Adopting(LocalEngine):
    """An engine on which a task of a killed runner has ended meanwhile."""

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        self.left = tasks
        adopted = frozenset(task.number for task in tasks if task.wanted)
        for number in adopted:
            workflow: Any = {"id": "spec", "name": "spec", "run_id": 1, "job_id": number, "attempt": 1}
            task = Task(number, 1, "a", ["true"], None, {}, "", "", workflow)
            record = unmeasured_record(task, Outcome(Status.COMPLETED, 0), self._receiver.journal)
            self._receiver.ended(Ended(number, record))
        return Recovered(0, adopted)


def test_a_task_that_the_engine_adopts_is_not_run_again_and_one_that_changed_is_not_wanted(place: Place) -> None:
    spec = """
jobs:
  - {name: a, command: 'touch ran.a'}
  - {name: b, command: 'touch ran.b', blocked_by: [a]}
  - {name: changed, command: 'touch ran.c'}
"""
    first, _, changed = plan_of(place.folder, spec).jobs
    left = [
        StartedTask(1, 1, "local", fingerprint(first), first.requirement, {"id": "x"}),
        StartedTask(3, 1, "local", "another", changed.requirement, {"id": "y"}),
    ]
    engine = Adopting()
    result = a_run(place, spec, engine=engine, left=left).run()
    assert [(1, True), (3, False)] == [(task.number, task.wanted) for task in engine.left]
    assert result.succeeded
    assert {"a": "completed", "b": "completed", "changed": "completed"} == statuses(result)
    assert [False, True, True] == [(place.folder / f"ran.{name}").exists() for name in "abc"]
    stored = open_store(str(place.store), print).runs(Selection(workflow="spec"))
    assert ["a", "b", "changed"] == sorted(row["name"] for row in stored)


@pytest.mark.parametrize("place", ["pipe"], indirect=True)
@pytest.mark.parametrize(("times", "expected"), [(1, ["lost", "completed"]), (0, ["lost"])])
def test_a_task_whose_worker_dies_is_lost_with_what_was_seen_and_tried_again_within_retry(
    place: Place, times: int, expected: list[str]
) -> None:
    spec = f"""
resource_monitor: {{granularity: time_series, sample_interval_seconds: 0.05}}
jobs:
  - name: a
    command: 'echo $PPID >>parents; [ $JOBMETER_ATTEMPT = 2 ] || exec sleep 60'
    retry: {{times: {times}}}
"""
    results: list[Result] = []
    run = a_run(place, spec)
    thread = threading.Thread(target=lambda: results.append(run.run()))
    thread.start()
    place.await_lines("parents", 1)
    (journal,) = (place.store / "journal").iterdir()
    wait_for(lambda: len(journal.read_text().splitlines()) >= 6, "some windows")
    (entry, *_) = map(json.loads, next(place.store.glob("workflows/*/1/tasks.jsonl")).read_text().splitlines())
    os.kill(entry["token"]["worker"][0], 9)
    thread.join()
    assert expected == [attempt.status for attempt in results[0].attempts]
    kept = open_store(str(place.store), print)
    record = kept.record(results[0].attempts[0].run)
    assert "lost" == record["outcome"]["status"]
    assert record["usage"]["memory_peak_bytes"]["value"] > 0
    assert "at least" == record["usage"]["memory_peak_bytes"]["quality"]
    wait_for(lambda: running_in(place.folder) == [], "the end of the first attempt")


def test_an_attempt_that_was_started_and_has_no_header_counts_as_one(place: Place) -> None:
    spec = "jobs: [{name: a, command: 'true'}]"
    (job,) = plan_of(place.folder, spec).jobs
    left = [StartedTask(1, 3, "local", fingerprint(job), job.requirement, {"host": os.uname().nodename})]
    assert [4] == [attempt.attempt for attempt in a_run(place, spec, left=left).run().attempts]
