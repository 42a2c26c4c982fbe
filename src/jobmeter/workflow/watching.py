"""The progress of a workflow that another process runs; `progress` is for the process that runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from jobmeter.model import Requirement, Status
from jobmeter.session.measuring import ignore
from jobmeter.times import parse_moment
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.eta import Pace, remaining_seconds
from jobmeter.workflow.graph import order
from jobmeter.workflow.history import StoredRun, restored_plan, stored_run
from jobmeter.workflow.plan import Job
from jobmeter.workflow.progress import JobView, View
from jobmeter.workflow.status import WorkflowStatus

_LOOK = 1.0
"""Seconds between two reads of the store, at least."""
_COST = 0.05
"""At most this share of the time is spent on reading the store: with many jobs it is read less often."""


class Watching:
    """Reads the progress of a run from the store, as often as that is cheap."""

    def __init__(self, stored: StoredRun) -> None:
        self.stored = stored
        self.status = stored.status()
        self._again_at = time.monotonic() + _LOOK
        self._jobs = order(restored_plan(stored).jobs)

    @property
    def is_over(self) -> bool:
        """Whether no process runs the workflow any more."""
        return not self.status.being_run

    def refresh(self) -> None:
        """Read the store again, if it is time to."""
        began = time.monotonic()
        if began < self._again_at:
            return
        directory = self.stored.directory
        self.stored = stored_run(directory.store, directory.workflow, directory.run_id, ignore)
        self.status = self.stored.status()
        now = time.monotonic()
        self._again_at = now + max(_LOOK, (now - began) / _COST)

    def view(self) -> View:
        """The progress as of now, by what was last read."""
        began = self.stored.directory.runner_began()
        return view_of(self._jobs, self.stored.attempts, self.status, began, time.time())


def view_of(jobs: Sequence[Job], attempts: Sequence[Attempt], status: WorkflowStatus, began: float, now: float) -> View:
    """The view of a run whose runner began at `began`. `jobs` are in topological order: see `graph.order`."""
    running = [(job.attempt, now - _moment(job.attempt)) for job in status.jobs if job.attempt and _runs(job.attempt)]
    running.sort(key=lambda each: -each[1])
    counts = {Status.COMPLETED.value: 0, Status.RUNNING.value: 0, "waiting": 0, **status.counts}
    return View(
        counts,
        len(status.jobs),
        max(now - began, 0.0),
        _seconds_left(jobs, attempts, status, began, now),
        [_job_view(attempt, seconds) for attempt, seconds in running],
        stopping=False,
    )


def _seconds_left(
    jobs: Sequence[Job], attempts: Sequence[Attempt], status: WorkflowStatus, began: float, now: float
) -> float | None:
    pace = Pace()
    busy = 0.0
    for attempt in attempts:
        if attempt.status == Status.COMPLETED:
            pace.add(attempt.step, attempt.wall_seconds or 0.0)
        if _moment(attempt) >= began:
            busy += now - _moment(attempt) if _runs(attempt) else attempt.wall_seconds or 0.0
    elapsed = {job.number: now - _moment(job.attempt) for job in status.jobs if job.attempt and _runs(job.attempt)}
    open_jobs = {job.number for job in status.jobs if job.status in (Status.RUNNING, "waiting")}
    is_settled: Callable[[int], bool] = lambda number: number not in open_jobs  # noqa: E731 - it is used only here
    concurrency = max(busy / max(now - began, 1e-9), float(len(elapsed)))
    return remaining_seconds(jobs, is_settled, elapsed, pace, concurrency)


def _runs(attempt: Attempt) -> bool:
    return attempt.status == Status.RUNNING


def _moment(attempt: Attempt) -> float:
    return parse_moment(attempt.started).timestamp()


def _job_view(attempt: Attempt, seconds: float) -> JobView:
    memory = None if attempt.memory_bytes is None else int(attempt.memory_bytes)
    requirement = Requirement(attempt.cpus, memory, attempt.runtime_seconds)
    # Only its runner knows what it uses at the moment.
    return JobView(attempt.name, attempt.attempt, max(seconds, 0.0), None, None, requirement)
