"""When a workflow will be through, as far as can be known from what has ended. Pure: jobs and times in, seconds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jobmeter.workflow.plan import Job

_OVERDUE = 0.5
"""A job that runs longer than its like did is taken to need this share more of what it took so far."""


class Pace:
    """How long jobs take: the mean of those that completed, by step."""

    def __init__(self) -> None:
        self._by_step: dict[str, tuple[int, float]] = {}

    def add(self, step: str, seconds: float) -> None:
        """Count a job that completed."""
        count, total = self._by_step.get(step, (0, 0.0))
        self._by_step[step] = count + 1, total + seconds

    def seconds(self, step: str) -> float | None:
        """What a job of this step is expected to take: the mean of its step; None: not known."""
        count, total = self._by_step.get(step, (0, 0.0))
        return total / count if count else None


def remaining_seconds(
    jobs: Sequence[Job],
    is_settled: Callable[[int], bool],
    elapsed: Mapping[int, float],
    pace: Pace,
    concurrency: float,
) -> float | None:
    """How long the rest takes: its work shared out among `concurrency` jobs, but never less than its longest chain.

    `jobs` come in an order in which each is after all it waits for, `elapsed` are the seconds of those that run.
    A step of which none has ended takes the time it requests; None where it does not say.
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
        # The jobs of a sweep share the tuple of those they wait for: a wide one is walked once.
        same = id(job.blocked_by)
        if same not in begins:
            begins[same] = max((ends.get(before, 0.0) for before in job.blocked_by), default=0.0)
        ends[job.number] = begins[same] + takes
        work += takes
        longest = max(longest, ends[job.number])
    return max(work / max(concurrency, 1.0), longest)
