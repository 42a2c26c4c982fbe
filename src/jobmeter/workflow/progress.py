"""The progress of a workflow that this process runs, read from another thread. Each attempt is counted only once."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

from jobmeter.analyse.headline import cpu_now
from jobmeter.analyse.headline_memory import memory_shown
from jobmeter.model import Requirement, Status, Value
from jobmeter.workflow.eta import Pace, remaining_seconds
from jobmeter.workflow.graph import order
from jobmeter.workflow.listener import Running
from jobmeter.workflow.run import WorkflowRun

_COST = 0.01
"""At most this share of the time is spent on the forecast: with many jobs it is made less often."""

_Item = TypeVar("_Item")


class JobView(NamedTuple):
    """A running job and what it uses at the moment; None where that is not known."""

    name: str
    attempt: int
    seconds: float
    cpu_percent: float | None
    memory_bytes: float | None
    requirement: Requirement

    @property
    def time_share(self) -> float | None:
        return _share(self.seconds, self.requirement.runtime_seconds)

    @property
    def cpu_share(self) -> float | None:
        return _share(self.cpu_percent, self.requirement.cpus and 100.0 * self.requirement.cpus)

    @property
    def memory_share(self) -> float | None:
        return _share(self.memory_bytes, self.requirement.memory_bytes)


class View(NamedTuple):
    """The progress at one moment."""

    counts: dict[str, int]  # completed, running, waiting; queued, failed, blocked and cancelled where there are any
    jobs: int
    seconds: float
    seconds_left: float | None
    running: list[JobView]  # the job that began first comes first
    stopping: bool

    @property
    def settled(self) -> int:
        """How many jobs are settled: done, cancelled, failed or blocked."""
        return self.jobs - self.counts["waiting"] - self.counts[Status.RUNNING] - self.counts.get("queued", 0)


class Progress:
    """Reads the progress of a run from another thread. `done` is the number of jobs that were done before it began."""

    def __init__(self, run: WorkflowRun, done: int) -> None:
        self._run = run
        self._done = done
        self._began = time.monotonic()
        self._order = order(run.plan.jobs)
        self._seen = 0
        self._completed = 0
        self._failed = self._cancelled = 0
        self._unsuccessful: dict[int, str] = {}  # job → the status of its last attempt, while it may be tried again
        self._pace = Pace()
        self._busy_seconds = 0.0
        self._left: float | None = None
        self._forecast_at = 0.0
        self._again_at = 0.0

    def view(self) -> View:
        now = time.monotonic()
        self._count()
        started = copied(self._run.running.values())
        running = sorted((each for each in started if not self._run.is_queued(each)), key=self._run.began_at)
        levels = self._run.levels()
        return View(
            self._counts(len(running), len(started) - len(running)),
            len(self._order),
            now - self._began,
            self._seconds_left(running, now),
            [_job_view(each, levels.get(each.job.number, {}), now - self._run.began_at(each)) for each in running],
            self._run.stopping,
        )

    def _count(self) -> None:
        """Count the attempts that ended since the last call."""
        # Checked before the attempts are read: the last attempt of a job that is settled by now is then among them.
        settled = [number for number in self._unsuccessful if self._run.scheduler.is_settled(number)]
        attempts = self._run.attempts
        while self._seen < len(attempts):
            attempt = attempts[self._seen]
            self._seen += 1
            self._busy_seconds += attempt.wall_seconds or 0.0
            if attempt.status == Status.COMPLETED:
                self._completed += 1
                self._unsuccessful.pop(attempt.number, None)
                self._pace.add(attempt.step, attempt.wall_seconds or 0.0)
            else:
                self._unsuccessful[attempt.number] = attempt.status
        for number in settled:
            status = self._unsuccessful.pop(number, None)
            if status == Status.CANCELLED:
                self._cancelled += 1
            elif status is not None:
                self._failed += 1

    def _counts(self, running: int, queued: int) -> dict[str, int]:
        counts = {
            Status.COMPLETED: self._done + self._completed,
            Status.RUNNING: running,
            **({"queued": queued} if queued else {}),
            "waiting": max(self._run.scheduler.waiting, 0),
        }
        more = {Status.FAILED: self._failed, "blocked": len(self._run.blocked), Status.CANCELLED: self._cancelled}
        return {**counts, **{name: number for name, number in more.items() if number}}

    def _seconds_left(self, running: list[Running], now: float) -> float | None:
        if self._run.stopping:
            return None
        if self._left is None or now >= self._again_at:
            elapsed = {each.job.number: now - self._run.began_at(each) for each in running}
            average = (self._busy_seconds + sum(elapsed.values())) / max(now - self._began, 1e-9)
            concurrency = max(average, float(len(running)))
            self._left = remaining_seconds(
                self._order, self._run.scheduler.is_settled, elapsed, self._pace, concurrency
            )
            self._forecast_at = now
            self._again_at = now + (time.monotonic() - now) / _COST
        return None if self._left is None else max(self._left - (now - self._forecast_at), 0.0)


def copied(items: Collection[_Item]) -> list[_Item]:
    """A copy of a collection that another thread may be changing."""
    while True:
        try:
            return list(items)
        except RuntimeError:
            continue  # it changed while it was copied


def _job_view(running: Running, levels: Mapping[str, Value], seconds: float) -> JobView:
    return JobView(
        running.job.name,
        running.attempt,
        max(seconds, 0.0),
        cpu_now(levels),
        memory_shown(levels),
        running.requirement,
    )


def _share(used: float | None, requested: float | None) -> float | None:
    return None if used is None or not requested else used / requested
