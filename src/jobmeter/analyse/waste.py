"""The rule of waste: what jobs requested and did not use, and what a smaller request would free.

`check`, `show` and the summaries of `run` and of workflows all use this rule. A request is wasted if completed runs of
some length used less than half of it, by figures that are sure, and if it can be lowered by enough to be worth a
change. Every requested GPU without a process on it is wasted. Requesting too much time has no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobmeter.analyse.check import job_of
from jobmeter.analyse.overuse import is_at_least, needed_cpus, used_amount
from jobmeter.analyse.resource import CPU, GPU, MEMORY, RESOURCES, Resource
from jobmeter.analyse.rounding import round_memory
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.light_typing import NamedTuple
from jobmeter.model import Quality, Status

WASTED_BELOW = 0.5
"""A request is wasted when less than this share of it was used."""
SHORTEST = 10.0
"""Seconds. What a shorter run requests is not worth freeing."""
LEAST_MEMORY = 256 * 2**20
LEAST_CPUS = 1.0
"""The least reduction of a request that is worth a change; `LEAST_CPUS` is also that of GPUs."""
ROOM = 1.2
"""Factor on the most memory that was used, for a lower request. `size`, which knows other runs, uses the history."""
_MET = tuple(resource.limit_status for resource in RESOURCES if resource.limit_status)


class Waste(NamedTuple):
    """A job that could request less."""

    name: str  # of the step, which all jobs of a sweep share
    resource: Resource
    runs: int
    requested: float  # bytes, CPUs or GPUs
    used: float  # the most of all runs
    less: float  # how much less could be requested
    freed: float  # byte-hours, core-hours or GPU-hours a run


def wasted_requests(runs: Iterable[StoredRun]) -> list[Waste]:
    """The wasted requests of each step; of each resource, those that would free most come first.

    Runs that failed, were short or have unsure figures are not counted, but what they used is. A job that met
    a limit is not advised to request less of anything, nor are the other jobs of its sweep.
    """
    groups: dict[tuple[str, Resource, float], list[StoredRun]] = {}
    short_of = set()
    for run in runs:
        step = job_of(run).step
        if run.get("status") in _MET:
            short_of.add(step)
        for resource in (MEMORY, CPU, GPU):
            if run.get(resource.requested):
                groups.setdefault((step, resource, run[resource.requested]), []).append(run)
    wasted = [_waste(*key, group) for key, group in groups.items() if key[0] not in short_of]
    return sorted((one for one in wasted if one is not None), key=lambda one: (one.resource.key, -one.freed))


def _waste(name: str, resource: Resource, requested: float, runs: Sequence[StoredRun]) -> Waste | None:
    sure = [run for run in runs if _is_sure(run, resource)]
    if not sure:
        return None
    amounts = [used for used in (used_amount(run, resource) for run in runs) if used is not None]
    used = max(amounts) / resource.each
    less = requested - _needed(resource, used, runs)
    is_well_used = resource is not GPU and used >= WASTED_BELOW * requested
    if is_well_used or less < (LEAST_MEMORY if resource is MEMORY else LEAST_CPUS):
        return None
    hours = sum(run["wall_seconds"] for run in sure) / len(sure) / 3600
    return Waste(name, resource, len(sure), requested, used, less, less * hours)


def _needed(resource: Resource, used: float, runs: Sequence[StoredRun]) -> float:
    if resource is MEMORY:
        return round_memory(used * ROOM)
    return used if resource is GPU else max(map(needed_cpus, runs))


def _may_be_more(run: StoredRun, resource: Resource) -> bool:
    """Whether the figure itself is "at least". A CPU peak that is only the mean is sure enough here."""
    return is_at_least(run, resource) if resource is GPU else run.get(resource.quality) == Quality.AT_LEAST.value


def _is_sure(run: StoredRun, resource: Resource) -> bool:
    return (
        run.get("status") == Status.COMPLETED.value
        and (run.get("wall_seconds") or 0) >= SHORTEST
        and run.get(resource.used) is not None
        and not _may_be_more(run, resource)
    )
