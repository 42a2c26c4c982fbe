"""What jobs asked for and did not use, and what asking for less would free."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from statistics import fmean
from typing import NamedTuple

from jobmeter.analyse.check import CPU, MEMORY, RESOURCES, Resource, Row, job_of, uses_more_cpus
from jobmeter.analyse.rounding import round_memory
from jobmeter.model import Quality, Status

WORTH = 0.5
"""Who used more than this share of what was asked for is not told to ask for less."""
SHORTEST = 10.0
"""Seconds of a run below which nothing is worth freeing."""
LEAST_MEMORY = 256 * 2**20
_MET = tuple(resource.met_by for resource in RESOURCES if resource.met_by)
ROOM = 1.2
"""What to leave above the most that was used, when nothing is known of other runs. `size` knows better."""


class Opportunity(NamedTuple):
    """A job that could ask for less."""

    name: str  # the step's, which all jobs of a sweep share
    resource: Resource
    runs: int
    asked: float  # bytes, or CPUs
    used: float  # at most
    less: float  # than asked for
    freed: float  # byte-hours or core-hours a run


def opportunities(rows: Iterable[Row]) -> list[Opportunity]:
    """The most to be freed first; of completed runs of some length, and of figures that are sure.

    Other runs are left out, but for what they are seen to have used. A job that met a limit is not told to ask for
    less of anything, nor are those of its sweep.
    """
    groups: dict[tuple[str, Resource, float], list[Row]] = {}
    short_of = set()
    for row in rows:
        step = job_of(row).step
        if row.get("status") in _MET:
            short_of.add(step)
        for resource in (MEMORY, CPU):
            if row.get(resource.asked):
                groups.setdefault((step, resource, row[resource.asked]), []).append(row)
    found = [_opportunity(*key, group) for key, group in groups.items() if key[0] not in short_of]
    return sorted((one for one in found if one is not None), key=lambda one: (one.resource.key, -one.freed))


def _is_sure(row: Row, resource: Resource) -> bool:
    return (
        row.get("status") == Status.COMPLETED
        and (row.get("wall_seconds") or 0) >= SHORTEST
        and row.get(resource.used) is not None
        and Quality.AT_LEAST.value not in (row.get("memory_quality"), row.get("cpu_quality"))
    )


def _opportunity(name: str, resource: Resource, asked: float, rows: list[Row]) -> Opportunity | None:
    sure = [row for row in rows if _is_sure(row, resource)]
    if not sure:
        return None
    seen = [row for row in rows if row.get(resource.used) is not None]
    used = max(row[resource.used] for row in seen) / resource.each
    enough = round_memory(used * ROOM) if resource is MEMORY else max(map(whole_cpus, seen))
    less = asked - enough
    if used > WORTH * asked or less < (LEAST_MEMORY if resource is MEMORY else 1):
        return None
    hours = fmean(row["wall_seconds"] for row in sure) / 3600
    return Opportunity(name, resource, len(sure), asked, used, less, less * hours)


def whole_cpus(row: Row) -> int:
    """The fewest CPUs that did for the run. Here no limit lets through a share more: a job shall have what it used."""
    cpus = 1
    most = max(row.get("cpu_peak_percent") or 0.0, row.get("cpu_mean_percent") or 0.0)
    while cpus < ceil(most / 100) and uses_more_cpus(row, cpus, peak_over=1.0):
        cpus += 1
    return cpus
