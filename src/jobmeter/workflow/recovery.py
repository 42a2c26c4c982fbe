"""What becomes of a job that failed: another attempt, with more of what it lacked, or none."""

from __future__ import annotations

import math

from jobmeter.model import Outcome, Requirement, Status
from jobmeter.workflow.capacity import Capacity
from jobmeter.workflow.plan import Job

_AT_THE_LIMIT = 1.05


def next_attempt(
    job: Job,
    asked: Requirement,
    ended: Outcome,
    attempt: int,
    capacity: Capacity,
    peak_bytes: float | None = None,
    *,
    met_own_limit: bool = True,
) -> Requirement | None:
    """What the next attempt asks for; None when the job is given up.

    `asked` is what the attempt that ended asked for, `peak_bytes` what it was seen to use. No more is asked for than
    there is, and who had all there is and still lacked it is not tried again. Who ran out of memory under a limit
    that is not its own gains nothing by asking for more.
    """
    retry = job.retry
    if attempt > retry.times:
        return None
    if ended.status == Status.OOM and Status.OOM in retry.on:
        if not met_own_limit:
            return asked
        return _with_more_memory(asked, retry.memory_factor, capacity, peak_bytes)
    if ended.status == Status.TIMEOUT and Status.TIMEOUT in retry.on:
        if asked.runtime_seconds is None:
            return asked
        return asked._replace(runtime_seconds=asked.runtime_seconds * retry.runtime_factor)
    return asked if ended.shell_code in retry.exit_codes else None


def _with_more_memory(
    asked: Requirement, factor: float, capacity: Capacity, peak_bytes: float | None
) -> Requirement | None:
    had = max(asked.memory_bytes or 0, peak_bytes or 0)
    if asked.memory_bytes is not None and had < asked.memory_bytes * _AT_THE_LIMIT:
        had = asked.memory_bytes  # the container runtime's own start is in the peak
    if not had:
        return asked
    wanted = math.ceil(had * factor)
    if capacity.memory_bytes is not None and wanted > capacity.memory_bytes:
        if asked.memory_bytes is not None and asked.memory_bytes >= capacity.memory_bytes:
            return None
        wanted = capacity.memory_bytes
    return asked._replace(memory_bytes=wanted)
