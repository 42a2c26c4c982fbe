"""How a plan would go if every job took all the time it requests. Pure: nothing is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.engines.contract import Capacity
from jobmeter.workflow.expected_usage import Use
from jobmeter.workflow.plan import Job
from jobmeter.workflow.simulation import Cluster, simulate

_SOME_TIME = 1.0
"""What a job that requests no runtime is assumed to take, to see how many run at a time."""


class Forecast(NamedTuple):
    concurrency: int  # the most jobs at a time
    seconds: float | None  # to the end of the last; None when a job requests no runtime
    without_runtime: int  # jobs that request none


def forecast(jobs: Sequence[Job], capacity: Capacity) -> Forecast:
    """Go through the jobs as the runner would. Each must fit: see `check_fit`."""
    requested = {job.number: job.requirement.runtime_seconds for job in jobs}
    draws = {number: [Use(_SOME_TIME if runtime is None else runtime)] for number, runtime in requested.items()}
    simulated = simulate(jobs, Cluster(1, capacity), draws)
    without_runtime = sum(runtime is None for runtime in requested.values())
    return Forecast(simulated.jobs_peak, None if without_runtime else simulated.seconds, without_runtime)
