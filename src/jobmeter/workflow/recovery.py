"""Whether a job that failed gets another attempt, and how much more of what it lacked that attempt requests."""

from __future__ import annotations

import math

from jobmeter.engines.contract import Capacity
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.workflow.plan import Job, Retry

_AT_THE_LIMIT = 1.05


def next_attempt(
    job: Job,
    requirement: Requirement,
    outcome: Outcome,
    attempt: int,
    capacity: Capacity,
    peak_bytes: float | None = None,
    *,
    met_own_limit: bool = True,
    retries_elsewhere: bool = False,
) -> Requirement | None:
    """What the next attempt requests; None if the job is given up.

    `requirement` is that of the attempt that ended, `peak_bytes` its peak of memory. The next attempt requests no more
    memory than one task may have; a job that requested all of that and still ran out is not tried again. A job that ran
    out of memory under a limit that is not its own gains nothing by requesting more, and requests the same. A job that
    was lost with its machine is tried again if the engine can run it on another one (`retries_elsewhere`).
    """
    retry = job.retry
    if attempt > retry.times:
        return None
    if outcome.status == Status.LOST and retries_elsewhere:
        return requirement
    if outcome.status == Status.OOM and Status.OOM in retry.on:
        if not met_own_limit:
            return requirement
        factor = _factor(retry, retry.memory_factor, attempt)
        return _with_more_memory(requirement, factor, capacity.most().memory_bytes, peak_bytes)
    if outcome.status == Status.TIMEOUT and Status.TIMEOUT in retry.on:
        if requirement.runtime_seconds is None:
            return requirement
        factor = _factor(retry, retry.runtime_factor, attempt)
        return requirement._replace(runtime_seconds=requirement.runtime_seconds * factor)
    return requirement if outcome.shell_code in retry.exit_codes else None


def _factor(retry: Retry, first: float, attempt: int) -> float:
    return first if attempt == 1 or retry.later_factor is None else retry.later_factor


def _with_more_memory(
    requirement: Requirement, factor: float, most: int | None, peak_bytes: float | None
) -> Requirement | None:
    requested = requirement.memory_bytes
    used = max(requested or 0, peak_bytes or 0)
    if requested is not None and used < requested * _AT_THE_LIMIT:
        used = requested  # the peak includes the start of the container runtime itself
    if not used:
        return requirement
    next_bytes = math.ceil(used * factor)
    if most is not None and next_bytes > most:
        if requested is not None and requested >= most:
            return None
        next_bytes = most
    return requirement._replace(memory_bytes=next_bytes)
