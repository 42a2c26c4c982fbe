"""The cost of requests: what they hold while a run runs, and how much of that is not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from jobmeter.analyse.resource import CPU, MEMORY, Resource
from jobmeter.analyse.size.advice import Cost
from jobmeter.analyse.stored_run import StoredRun

GB_HOUR = 2.0**30 * 3600
CORE_HOUR = 3600.0


def cost_of(completed: Sequence[StoredRun], requests: Mapping[Resource, float | None]) -> Cost:
    """The cost of an average run with these requests."""
    seconds = [row["wall_seconds"] for row in completed if row.get("wall_seconds") is not None]
    mean = fmean(seconds) if seconds else None
    memory, cpus = requests.get(MEMORY), requests.get(CPU)
    return Cost(
        None if mean is None or memory is None else memory * mean / GB_HOUR,
        None if mean is None or cpus is None else cpus * mean / CORE_HOUR,
    )


def wasted_memory(completed: Sequence[StoredRun], today: float | None) -> float | None:
    """GiB-hours that an average run with this request does not use; None if not known."""
    if today is None:
        return None
    unused = [
        max(today - row[MEMORY.used], 0) * row["wall_seconds"]
        for row in completed
        if row.get(MEMORY.used) is not None and row.get("wall_seconds") is not None
    ]
    return fmean(unused) / GB_HOUR if unused else None


def wasted_cpus(completed: Sequence[StoredRun], today: float | None) -> float | None:
    """Core-hours that an average run with this request does not use; None if not known."""
    if today is None:
        return None
    unused = [
        max(today * row["wall_seconds"] - row["cpu_seconds"], 0)
        for row in completed
        if row.get("cpu_seconds") is not None and row.get("wall_seconds") is not None
    ]
    return fmean(unused) / CORE_HOUR if unused else None
