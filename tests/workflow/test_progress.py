from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.engines.contract import Capabilities, Capacity, Task
from jobmeter.engines.local import LocalEngine
from jobmeter.model import Outcome, Status, Value
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.directory import RunDirectory, new_run
from jobmeter.workflow.listener import Running
from jobmeter.workflow.plan import Job, Monitor, Plan
from jobmeter.workflow.progress import Progress, copied
from jobmeter.workflow.run import WorkflowRun
from jobmeter.workflow.task_maker import RunOptions
from tests.waiting import wait_for
from tests.workflow.jobs import a_job, a_sweep


def attempt(job: Job, status: str = "completed", seconds: float = 10.0, number: int = 1) -> Attempt:
    outcome = Outcome(Status(status), 0 if status == "completed" else 1)
    unknown: list[Any] = [None] * 7
    return Attempt(job.number, job.name, job.step, number, f"run{job.number}", outcome, "", seconds, (), *unknown)


class Steered(WorkflowRun):
    """A run whose jobs begin and end when a test says so."""

    def __init__(self, folder: Path, jobs: list[Job], cpus: float = 4.0) -> None:
        plan = Plan("demo", "", "", "/spec.yaml", Monitor(), False, jobs)
        capacity = Capacity(cpus, None)
        options = RunOptions(str(folder), capacity)
        super().__init__(plan, RunDirectory(str(folder), "demo", 1), options, engine=LocalEngine())
        self.seen: dict[int, dict[str, Value]] = {}
        self.begin()

    def begin(self) -> None:
        for job in self.scheduler.startable(0.0):
            self.running[job.number] = Running(job, 1, 0.0, job.requirement)

    def end(self, number: int, status: str = "completed", seconds: float = 10.0, *, again: bool = False) -> None:
        job = self.running.pop(number).job
        self.attempts.append(attempt(job, status, seconds))
        if status == "completed":
            self.scheduler.completed(number)
        elif again:
            self.scheduler.retry(number, job.requirement)
        else:
            self.blocked.update(self.scheduler.failed(number))

    def levels(self) -> dict[int, dict[str, Value]]:
        return self.seen


def test_jobs_are_counted_by_what_became_of_them(tmp_path: Path) -> None:
    run = Steered(tmp_path, [*a_sweep(1, 6, step="train"), a_job(7, 1), a_job(8, 2)])
    progress = Progress(run, done=0)
    assert {"completed": 0, "running": 4, "waiting": 4} == progress.view().counts
    run.end(1)
    run.end(2, "failed")
    progress.view()
    assert {"completed": 1, "running": 2, "waiting": 3, "failed": 1, "blocked": 1} == progress.view().counts


def test_a_job_that_will_be_tried_again_has_not_failed(tmp_path: Path) -> None:
    run = Steered(tmp_path, [a_job(1)])
    progress = Progress(run, done=0)
    run.end(1, "oom", again=True)
    assert {"completed": 0, "running": 0, "waiting": 1} == progress.view().counts
    run.begin()
    run.end(1)
    assert {"completed": 1, "running": 0, "waiting": 0} == progress.view().counts
    assert {"completed": 1, "running": 0, "waiting": 0} == progress.view().counts


def test_what_was_stopped_was_cancelled_and_nothing_more_is_expected(tmp_path: Path) -> None:
    run = Steered(tmp_path, a_sweep(1, 2, step="train"))
    progress = Progress(run, done=0)
    run.end(1)
    run.stop()
    run.end(2, "cancelled")
    progress.view()
    view = progress.view()
    assert {"completed": 1, "running": 0, "waiting": 0, "cancelled": 1} == view.counts
    assert view.stopping
    assert view.seconds_left is None


def test_jobs_that_were_done_before_count_as_completed(tmp_path: Path) -> None:
    assert 3 == Progress(Steered(tmp_path, [a_job(1)]), done=3).view().counts["completed"]


def test_the_time_left_follows_from_what_ended(tmp_path: Path) -> None:
    run = Steered(tmp_path, [a_job(1, name="first"), a_job(2, 1, name="second", step="first")])
    progress = Progress(run, done=0)
    assert progress.view().seconds_left is None
    run.end(1, seconds=10.0)
    assert 10.0 == progress.view().seconds_left


def test_a_running_job_shows_what_it_uses_of_what_it_requested(tmp_path: Path) -> None:
    run = Steered(tmp_path, [a_job(1, name="train", cpus=2, memory_bytes=400)])
    run.seen[1] = {"perf_cpu_percent": 50.0, "proc_pss_total": 100}
    (job,) = Progress(run, done=0).view().running
    assert ("train", 50.0, 100) == (job.name, job.cpu_percent, job.memory_bytes)
    assert (0.25, 0.25, None) == (job.cpu_share, job.memory_share, job.time_share)


def test_what_is_not_measured_is_not_shown_as_zero(tmp_path: Path) -> None:
    (job,) = Progress(Steered(tmp_path, [a_job(1, cpus=1)]), done=0).view().running
    assert (None, None, None) == (job.cpu_percent, job.memory_bytes, job.cpu_share)


class QueueEngine(LocalEngine):
    """This machine, with a queue in front of it: tasks begin when a test says so."""

    capabilities = Capabilities(has_queue=True)

    def __init__(self) -> None:
        super().__init__()
        self.queue: list[Task] = []

    def start(self, task: Task) -> None:
        self.queue.append(task)

    def begin_next(self) -> None:
        super().start(self.queue.pop(0))


def test_a_job_in_the_queue_of_its_engine_is_queued_and_not_running(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    words = ["sh", "-c", f"until [ -e {gate} ]; do sleep 0.01; done"]
    jobs = [a_job(number)._replace(command=words) for number in (1, 2)]
    directory = new_run(str(tmp_path), "demo")
    plan = Plan("demo", "", "", "/spec.yaml", Monitor(), False, jobs)
    engine = QueueEngine()
    run = WorkflowRun(plan, directory, RunOptions(str(tmp_path), Capacity()), engine=engine)
    progress = Progress(run, done=0)
    runner = threading.Thread(target=run.run, daemon=True)
    runner.start()
    wait_for(lambda: len(engine.queue) == 2, "both jobs in the queue")
    view = progress.view()
    assert {"completed": 0, "running": 0, "queued": 2, "waiting": 0} == view.counts
    assert (0, []) == (view.settled, view.running)
    engine.begin_next()
    wait_for(lambda: progress.view().counts["running"] == 1, "the first job to run")
    view = progress.view()
    assert {"completed": 0, "running": 1, "queued": 1, "waiting": 0} == view.counts
    assert ["job1"] == [job.name for job in view.running]
    engine.begin_next()
    wait_for(lambda: progress.view().counts["running"] == 2, "the second job to run")
    gate.touch()
    runner.join()
    assert {"completed": 2, "running": 0, "waiting": 0} == progress.view().counts


class Restless:
    """Changes while it is looked at, twice."""

    def __init__(self) -> None:
        self.looks = 0

    def __iter__(self) -> Iterator[int]:
        self.looks += 1
        yield 1
        if self.looks < 3:
            raise RuntimeError("dictionary changed size during iteration")

    def __len__(self) -> int:
        return 1

    def __contains__(self, item: object) -> bool:
        return item == 1


def test_a_copy_is_made_of_what_others_change() -> None:
    assert [1] == copied(Restless())


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_run_that_has_nothing_to_do_can_be_looked_at(tmp_path: Path, jobs: int) -> None:
    run = Steered(tmp_path, a_sweep(1, jobs, step="a"))
    progress = Progress(run, done=0)
    for number in list(run.running):
        run.end(number)
    assert 0.0 == progress.view().seconds_left
