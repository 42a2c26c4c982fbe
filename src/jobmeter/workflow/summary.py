"""What a whole workflow used: totals, the critical path, the costliest attempts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.graph import critical_path
from jobmeter.workflow.plan import Job

_HOUR = 3600.0
_GB = 2.0**30


class Totals(NamedTuple):
    """Sums over every attempt; None where nothing was measured or requested."""

    core_hours: float | None
    gb_hours: float | None
    core_hours_requested: float | None
    gb_hours_requested: float | None
    cpu_efficiency: float | None  # the share of the requested CPU time that was used, where both are known
    memory_efficiency: float | None  # peak memory as a share of the requested memory, weighted by wall time


class WorkflowSummary(NamedTuple):
    totals: Totals
    critical_path: list[str]
    critical_seconds: float
    costliest: list[Attempt]


def summarise(jobs: Sequence[Job], attempts: Sequence[Attempt], most: int = 5) -> WorkflowSummary:
    """The summary of all attempts at these jobs."""
    seconds: dict[int, float] = {}
    for attempt in attempts:
        seconds[attempt.number] = seconds.get(attempt.number, 0.0) + (attempt.wall_seconds or 0.0)
    names = {job.number: job.name for job in jobs}
    chain = critical_path(jobs, seconds)
    return WorkflowSummary(
        totals(attempts),
        [names[number] for number in chain],
        sum(seconds.get(number, 0.0) for number in chain),
        sorted((each for each in attempts if cost(each)), key=cost, reverse=True)[:most],
    )


def cost(attempt: Attempt) -> float:
    """The CPU seconds that an attempt kept from others: what it requested or what it used, whichever is more."""
    held = (attempt.cpus or 0.0) * (attempt.wall_seconds or 0.0)
    return max(held, attempt.figure("cpu_seconds") or 0.0)


def totals(attempts: Iterable[Attempt]) -> Totals:
    core = gb = requested_core = requested_gb = cpu_with_request = peak_with_request = gb_compared = None
    for each in attempts:
        wall = each.wall_seconds or 0.0
        core = _plus(core, each.figure("cpu_seconds"))
        gb = _plus(gb, each.figure("memory_mean_bytes"), wall)
        if each.cpus is not None and each.figure("cpu_seconds") is not None:
            requested_core = _plus(requested_core, each.cpus, wall)
            cpu_with_request = _plus(cpu_with_request, each.figure("cpu_seconds"))
        requested_gb = _plus(requested_gb, each.memory_bytes, wall)
        if each.memory_bytes is not None and each.figure("memory_peak_bytes") is not None:
            peak_with_request = _plus(peak_with_request, each.figure("memory_peak_bytes"), wall)
            gb_compared = _plus(gb_compared, each.memory_bytes, wall)
    return Totals(
        _over(core, _HOUR),
        _over(gb, _GB * _HOUR),
        _over(requested_core, _HOUR),
        _over(requested_gb, _GB * _HOUR),
        _over(cpu_with_request, requested_core),
        _over(peak_with_request, gb_compared),
    )


def _plus(so_far: float | None, value: float | None, factor: float = 1.0) -> float | None:
    return so_far if value is None else (so_far or 0.0) + value * factor


def _over(value: float | None, by: float | None) -> float | None:
    return None if value is None or not by else value / by
