"""The limits of the cgroups that enclose this process: in many containers, less than the machine has."""

from __future__ import annotations

import os
from collections.abc import Iterator

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.group import own_directories
from jobmeter.kernel.hostfs import read_memory_total
from jobmeter.kernel.machine import Machine, cpu_count, read_text

_NO_LIMIT = 1 << 60
"""Bytes. cgroup v1 writes "no limit" as a number near 2^63."""


def memory_allowed(machine: Machine) -> int | None:
    """Bytes: the machine's memory or the lowest limit of enclosing cgroups, whichever is less; None if not known."""
    try:
        total = read_memory_total(machine)
    except (OSError, ValueError):
        return None
    return min([total, *_memory_limits(machine)])


def cpus_allowed(machine: Machine) -> float:
    """Number of CPUs: those this process may run on or the lowest quota of enclosing cgroups, whichever is less."""
    return min([float(cpu_count()), *_cpu_limits(machine)])


def _memory_limits(machine: Machine) -> Iterator[int]:
    v1, v2 = _directories(machine)
    if "memory" in v1:
        for line in _read(f"{v1['memory']}/memory.stat").splitlines():
            name, _, value = line.partition(" ")
            # The limit that applies here, whichever enclosing group has set it.
            if name == "hierarchical_memory_limit" and int(value) < _NO_LIMIT:
                yield int(value)
    for directory in _upwards(v2):
        limit = _read(f"{directory}/memory.max").strip()
        if limit.isdigit():
            yield int(limit)


def _cpu_limits(machine: Machine) -> Iterator[float]:
    v1, v2 = _directories(machine)
    for directory in _upwards(v1.get("cpu")):
        yield from _quota(_read(f"{directory}/cpu.cfs_quota_us"), _read(f"{directory}/cpu.cfs_period_us"))
    for directory in _upwards(v2):
        yield from _quota(*(_read(f"{directory}/cpu.max").split() or ("", "")))


def _quota(quota: str, period: str) -> Iterator[float]:
    """Yield the quota as a number of CPUs; nothing for `max` or -1, which mean no limit."""
    if quota.strip().isdigit() and period.strip().isdigit() and int(period):
        yield int(quota) / int(period)


def _directories(machine: Machine) -> tuple[dict[str, str], str | None]:
    try:
        return own_directories(machine)
    except NoData:
        return {}, None


def _upwards(directory: str | None) -> Iterator[str]:
    """Yield the directory and its parents, as long as they are cgroups."""
    while directory is not None and os.path.exists(f"{directory}/cgroup.procs"):
        yield directory
        directory = os.path.dirname(directory)


def _read(path: str) -> str:
    try:
        return read_text(path)
    except OSError:
        return ""
