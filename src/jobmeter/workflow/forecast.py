"""How a plan would go if every job took all the time it asks for. Pure: nothing is started."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.engines.contract import Capacity
from jobmeter.workflow.plan import Job
from jobmeter.workflow.scheduling import Scheduler

_SOME_TIME = 1.0
"""What a job is taken to need that does not say, to see how many run at a time."""


class Forecast(NamedTuple):
    concurrency: int  # the most jobs at a time
    seconds: float | None  # to the end of the last; None when a job does not say how long it takes
    untold: int  # jobs that do not say


def forecast(jobs: Sequence[Job], capacity: Capacity) -> Forecast:
    """Go through the jobs as the runner would. Each must fit: see `check_fit`."""
    scheduler = Scheduler(jobs, capacity)
    ends: list[tuple[float, int]] = []
    now, most = 0.0, 0
    while True:
        for job in scheduler.startable():
            runtime = job.requirement.runtime_seconds
            heapq.heappush(ends, (now + (_SOME_TIME if runtime is None else runtime), job.number))
        if not ends:
            break
        most = max(most, len(ends))
        now, number = heapq.heappop(ends)
        scheduler.completed(number)
    untold = sum(job.requirement.runtime_seconds is None for job in jobs)
    return Forecast(most, None if untold else now, untold)
