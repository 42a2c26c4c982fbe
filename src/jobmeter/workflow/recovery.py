"""What becomes of a job that failed: another attempt, with more of what it lacked, or none."""

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
    """What the next attempt requests; None when the job is given up.

    `requirement` is that of the attempt that ended, `peak_bytes` what it was seen to use. No more is requested than
    one task may have, and a job that had all of it and still lacked it is not tried again. One that ran out of memory
    under a limit that is not its own gains nothing by requesting more. One that was lost with its machine is tried
    again if there are others.
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
        used = requested  # the container runtime's own start is in the peak
    if not used:
        return requirement
    next_bytes = math.ceil(used * factor)
    if most is not None and next_bytes > most:
        if requested is not None and requested >= most:
            return None
        next_bytes = most
    return requirement._replace(memory_bytes=next_bytes)
