"""What jobs asked for and did not use, and what asking for less would free."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from statistics import fmean
from typing import NamedTuple

from jobmeter.analyse.check import CPU, MEMORY, Resource, Row, job_of, uses_more_cpus
from jobmeter.analyse.rounding import round_memory
from jobmeter.model import Quality

WORTH = 0.5
"""Who used more than this share of what was asked for is not told to ask for less."""
SHORTEST = 10.0
"""Seconds of a run below which nothing is worth freeing."""
LEAST_MEMORY = 256 * 2**20
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
    """The most to be freed first; of completed runs of some length, and of figures that are sure."""
    groups: dict[tuple[str, Resource, float], list[Row]] = {}
    for row in rows:
        for resource in (MEMORY, CPU):
            if row.get(resource.asked):
                groups.setdefault((job_of(row).step, resource, row[resource.asked]), []).append(row)
    found = [_opportunity(*key, group) for key, group in groups.items() if all(_is_sure(row) for row in group)]
    return sorted((one for one in found if one is not None), key=lambda one: (one.resource.key, -one.freed))


def _is_sure(row: Row) -> bool:
    return (
        row.get("status") == "completed"
        and (row.get("wall_seconds") or 0) >= SHORTEST
        and Quality.AT_LEAST.value not in (row.get("memory_quality"), row.get("cpu_quality"))
    )


def _opportunity(name: str, resource: Resource, asked: float, rows: list[Row]) -> Opportunity | None:
    peaks = [row[resource.used] / resource.each for row in rows if row.get(resource.used) is not None]
    if len(peaks) < len(rows):
        return None
    used = max(peaks)
    enough = round_memory(used * ROOM) if resource is MEMORY else max(map(whole_cpus, rows))
    less = asked - enough
    if used > WORTH * asked or less < (LEAST_MEMORY if resource is MEMORY else 1):
        return None
    hours = fmean(row["wall_seconds"] for row in rows) / 3600
    return Opportunity(name, resource, len(rows), asked, used, less, less * hours)


def whole_cpus(row: Row) -> int:
    """The fewest CPUs of which it is not sure that the run used more."""
    cpus = 1
    most = max(row.get("cpu_peak_percent") or 0.0, row.get("cpu_mean_percent") or 0.0)
    while cpus < ceil(most / 100) and uses_more_cpus(row, cpus):
        cpus += 1
    return cpus
