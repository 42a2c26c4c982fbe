"""Estimates when a workflow will end, from the jobs that have ended. Pure: jobs and times in, seconds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jobmeter.workflow.plan import Job

_OVERDUE = 0.5
"""A job that has run longer than expected is assumed to need this share of its elapsed time in addition."""


class Pace:
    """How long jobs take: the mean duration of the completed jobs of each step."""

    def __init__(self) -> None:
        self._by_step: dict[str, tuple[int, float]] = {}

    def add(self, step: str, seconds: float) -> None:
        """Count a job that completed."""
        count, total = self._by_step.get(step, (0, 0.0))
        self._by_step[step] = count + 1, total + seconds

    def seconds(self, step: str) -> float | None:
        """How long a job of this step is expected to take: the mean of its step; None if none has completed."""
        count, total = self._by_step.get(step, (0, 0.0))
        return total / count if count else None


def remaining_seconds(
    jobs: Sequence[Job],
    is_settled: Callable[[int], bool],
    elapsed: Mapping[int, float],
    pace: Pace,
    concurrency: float,
) -> float | None:
    """How long the rest takes: its work with `concurrency` jobs at a time, but never less than its longest chain.

    `jobs` are in topological order: each comes after all jobs it waits for. `elapsed` has the seconds that the running
    jobs have run. A job of a step that has no completed job takes the runtime it requests; None if it requests none.
    """
    work = longest = 0.0
    ends: dict[int, float] = {}
    begins: dict[int, float] = {}
    for job in jobs:
        if is_settled(job.number):
            continue
        takes = pace.seconds(job.step)
        if takes is None:
            takes = job.requirement.runtime_seconds
        if takes is None:
            return None
        if job.number in elapsed:
            so_far = elapsed[job.number]
            takes = takes - so_far if so_far < takes else _OVERDUE * so_far
        # The jobs of a sweep share one `blocked_by` tuple: a long one is walked only once.
        same = id(job.blocked_by)
        if same not in begins:
            begins[same] = max((ends.get(before, 0.0) for before in job.blocked_by), default=0.0)
        ends[job.number] = begins[same] + takes
        work += takes
        longest = max(longest, ends[job.number])
    return max(work / max(concurrency, 1.0), longest)
