"""Simulates a plan in which every job takes all the runtime it requests. Pure: nothing is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.engines.contract import Capacity
from jobmeter.workflow.expected_usage import Use
from jobmeter.workflow.plan import Job
from jobmeter.workflow.simulation import Cluster, simulate

_SOME_TIME = 1.0
"""The seconds that a job without a requested runtime is assumed to take, to see how many jobs run at a time."""


class Forecast(NamedTuple):
    concurrency: int  # the most jobs at a time
    seconds: float | None  # until the last job ends; None if a job requests no runtime
    without_runtime: int  # number of jobs that request no runtime


def forecast(jobs: Sequence[Job], capacity: Capacity) -> Forecast:
    """Simulate the jobs as the runner would run them. Each must fit the capacity: see `check_fit`."""
    requested = {job.number: job.requirement.runtime_seconds for job in jobs}
    draws = {number: [Use(_SOME_TIME if runtime is None else runtime)] for number, runtime in requested.items()}
    simulated = simulate(jobs, Cluster(1, capacity), draws)
    without_runtime = sum(runtime is None for runtime in requested.values())
    return Forecast(simulated.jobs_peak, None if without_runtime else simulated.seconds, without_runtime)
