"""What a whole workflow used: totals, the chain that took longest, the costliest jobs, what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobmeter.model import Status
from jobmeter.workflow.attempts import Attempt, latest
from jobmeter.workflow.graph import critical_path
from jobmeter.workflow.plan import Job

_HOUR = 3600.0
_GB = 2.0**30


class Totals(NamedTuple):
    """Sums over every attempt; None where nothing was measured or asked for."""

    core_hours: float | None
    gb_hours: float | None
    core_hours_asked: float | None
    gb_hours_asked: float | None
    cpu_efficiency: float | None  # CPU time used of that asked for, where both are largest
    memory_efficiency: float | None  # peak memory of that asked for, weighted by time


class Recovered(NamedTuple):
    """A step that needed more than its spec says, and what did in the end."""

    step: str
    attempts: int
    memory_bytes: float | None  # None: as written
    runtime_seconds: float | None


class WorkflowSummary(NamedTuple):
    totals: Totals
    critical_path: list[str]
    critical_seconds: float
    costliest: list[Attempt]
    recovered: list[Recovered]


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
        recovered(jobs, attempts),
    )


def cost(attempt: Attempt) -> float:
    """What an attempt kept others from using, in seconds of a CPU: what it asked for, or used if it did not ask."""
    held = (attempt.cpus or 0.0) * (attempt.wall_seconds or 0.0)
    return max(held, attempt.cpu_seconds or 0.0)


def totals(attempts: Iterable[Attempt]) -> Totals:
    core = gb = core_asked = gb_asked = cpu_of_asked = peak_of_asked = gb_compared = None
    for each in attempts:
        wall = each.wall_seconds or 0.0
        core = _plus(core, each.cpu_seconds)
        gb = _plus(gb, each.memory_mean_bytes, wall)
        if each.cpus is not None and each.cpu_seconds is not None:
            core_asked = _plus(core_asked, each.cpus, wall)
            cpu_of_asked = _plus(cpu_of_asked, each.cpu_seconds)
        gb_asked = _plus(gb_asked, each.memory_bytes, wall)
        if each.memory_bytes is not None and each.memory_peak_bytes is not None:
            peak_of_asked = _plus(peak_of_asked, each.memory_peak_bytes, wall)
            gb_compared = _plus(gb_compared, each.memory_bytes, wall)
    return Totals(
        _over(core, _HOUR),
        _over(gb, _GB * _HOUR),
        _over(core_asked, _HOUR),
        _over(gb_asked, _GB * _HOUR),
        _over(cpu_of_asked, core_asked),
        _over(peak_of_asked, gb_compared),
    )


def _plus(so_far: float | None, value: float | None, factor: float = 1.0) -> float | None:
    return so_far if value is None else (so_far or 0.0) + value * factor


def _over(value: float | None, by: float | None) -> float | None:
    return None if value is None or not by else value / by


def recovered(jobs: Sequence[Job], attempts: Sequence[Attempt]) -> list[Recovered]:
    """What steps took that completed with more than they asked for first; the largest of each step."""
    requirements = {job.number: job.requirement for job in jobs}
    by_step: dict[str, Recovered] = {}
    for last in latest(list(attempts)).values():
        first = requirements.get(last.number)
        if last.attempt == 1 or last.status != Status.COMPLETED or first is None:
            continue
        largest = by_step.get(last.step)
        by_step[last.step] = Recovered(
            last.step,
            max(last.attempt, largest.attempts if largest else 0),
            _grown(first.memory_bytes, last.memory_bytes, largest.memory_bytes if largest else None),
            _grown(first.runtime_seconds, last.runtime_seconds, largest.runtime_seconds if largest else None),
        )
    return [each for each in by_step.values() if (each.memory_bytes, each.runtime_seconds) != (None, None)]


def _grown(first: float | None, last: float | None, largest: float | None) -> float | None:
    if last is None or (first is not None and last <= first):
        return largest
    return max(last, largest or 0.0)
