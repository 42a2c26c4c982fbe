"""The headline figures: which source they are taken from, and how far to trust them.

`summary` is the `measurements` part of a run record, `described` the descriptions
of its keys; neither need be of this version of jobmeter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobmeter.model import Quality

CPU_SECONDS = (
    "cgroup_cpu_seconds", "perf_cpu_seconds", "rusage_cpu_seconds", "proc_cpu_seconds",
    "psutil_cpu_seconds", "ps_cpu_seconds", "container_cpu_seconds",
)  # fmt: skip
# What other tools recorded of imported runs is asked last.
OTHERS_CPU_SECONDS = ("slurm_cpu_seconds", "nextflow_cpu_seconds", "gnutime_cpu_seconds")
OTHERS_CPU_PERCENT = ("nextflow_cpu_percent", "duct_pcpu_total")
CPU_PERCENT = (
    "cgroup_cpu_percent", "perf_cpu_percent", "proc_cpu_percent", "psutil_cpu_percent", "ps_pdcpu",
    *OTHERS_CPU_PERCENT,
)  # fmt: skip
READ_BYTES = (
    "proc_read_bytes", "cgroup_read_bytes", "container_block_read_bytes",
    "nextflow_read_bytes", "slurm_max_disk_read", "gnutime_read_bytes",
)  # fmt: skip
WRITE_BYTES = (
    "proc_write_bytes", "cgroup_write_bytes", "container_block_write_bytes",
    "nextflow_write_bytes", "slurm_max_disk_write", "gnutime_write_bytes",
)  # fmt: skip
MEMORY_TOTAL = (
    "proc_pss_total", "psutil_pss_total", "proc_rss_total", "psutil_rss_total", "ps_rss_total",
    # An engine counts page cache too.
    "container_mem_peak", "container_mem_current",
    "slurm_max_rss", "nextflow_peak_rss", "nextflow_rss", "duct_rss_total",
)  # fmt: skip
MEMORY_MEAN = ("cgroup_held", *MEMORY_TOTAL)
SINGLE_PROCESS = ("rusage_maxrss", "proc_hwm_max", "gnutime_maxrss")
PROCESSES = ("proc_processes",)

_MORE = 1.005
_TICK = 0.05
_AGREE = 1.03
"""Accounts of CPU time that are this close bear each other out."""
_LITTLE_CACHE = 0.02

Figure = dict[str, Any]
"""`{"value": …, "from": key, "quality": …}`"""

Summary = dict[str, dict[str, Any]]
Described = dict[str, dict[str, str]]


def usage(summary: Summary, described: Described, wall_seconds: float, *, complete: bool = True) -> dict[str, Figure]:
    """The headline figures of a run; what was not measured is not among them.

    With `complete` false, processes of the job go on unseen: CPU time and the like are at least that.
    """
    figures = {
        "cpu_seconds": _cpu_seconds(summary, described) or _first(summary, described, OTHERS_CPU_SECONDS, "total"),
        "cpu_peak_percent": _first(summary, described, CPU_PERCENT, "peak"),
        "memory_peak_bytes": memory_peak(summary, described),
        "memory_mean_bytes": _first(summary, described, MEMORY_MEAN, "mean"),
        "read_bytes": _first(summary, described, READ_BYTES, "total"),
        "write_bytes": _first(summary, described, WRITE_BYTES, "total"),
        "processes_peak": _first(summary, described, PROCESSES, "peak"),
        "cpu_mean_percent": _first(summary, described, OTHERS_CPU_PERCENT, "mean"),
    }
    cpu = figures["cpu_seconds"]
    if cpu is not None and wall_seconds > 0:
        mean = figures["cpu_mean_percent"] = {**cpu, "value": round(100 * cpu["value"] / wall_seconds, 2)}
        peak = figures["cpu_peak_percent"]
        if peak is None or peak["value"] < mean["value"]:
            # Too short a job for a rate: the peak was at least the mean.
            figures["cpu_peak_percent"] = {**mean, "quality": Quality.AT_LEAST.value}
    found = {name: figure for name, figure in figures.items() if figure is not None}
    if not complete:
        for name in ("cpu_seconds", "cpu_mean_percent", "memory_peak_bytes", "read_bytes", "write_bytes"):
            if name in found:
                found[name] = {**found[name], "quality": Quality.AT_LEAST.value}
    return found


def _first(summary: Summary, described: Described, keys: Iterable[str], field: str) -> Figure | None:
    for key in keys:
        if field in summary.get(key, {}):
            return _figure(summary[key][field], key, described)
    return None


def _figure(value: float, key: str, described: Described, quality: Quality | None = None) -> Figure:
    told = quality.value if quality else described.get(key, {}).get("quality", Quality.SAMPLED.value)
    return {"value": value, "from": key, "quality": told}


def _cpu_seconds(summary: Summary, described: Described) -> Figure | None:
    """The first source of the order, or a later one that tells more.

    Each can miss something and none invents any: a setuid program leaves perf behind, a process that
    moves leaves the cgroup, and perf does not see all of a fork.
    """
    first = best = None
    for key in CPU_SECONDS:
        total = summary.get(key, {}).get("total")
        if total is None:
            continue
        if first is None or best is None:
            first = best = _figure(total, key, described)
        elif total > best["value"] * _MORE + _TICK:
            best = _figure(total, key, described)
    if first is not None and best is not None and best["value"] <= first["value"] * _AGREE:
        best = {**best, "quality": first["quality"]}
    return best


def memory_peak(summary: Summary, described: Described) -> Figure | None:
    """The most memory the job held that could not be reclaimed.

    A cgroup's peak is exact and counts page cache. Where there was hardly any, it is the answer;
    else it is an upper bound of it, and the levels that were sampled a lower one.
    """
    if summary.get("cgroup_oom_kills", {}).get("total", 0) > 0:
        # It met its limit, which counts as the cgroup does: resident pages of files may be charged to others.
        return _first(summary, described, ("cgroup_mem_peak",), "peak")
    figure = _group_peak(summary, described) or _first(summary, described, MEMORY_TOTAL, "peak")
    for key in SINGLE_PROCESS:
        size = summary.get(key, {}).get("peak")
        if size is not None and (figure is None or size > figure["value"]):
            figure = _figure(size, key, described, _single_quality(summary, described))
    return figure


def memory_now(values: Mapping[str, object]) -> float | None:
    """Memory of a job at one moment, from its readings; None when it cannot be told well enough to act on.

    The resident sizes of several processes count what they share in each, so a sum of those will not do.
    """
    for key in MEMORY_TOTAL:
        value = values.get(key)
        if isinstance(value, (int, float)) and ("_pss_" in key or values.get("proc_processes", 1) == 1):
            return float(value)
    return None


def cpu_now(values: Mapping[str, object]) -> float | None:
    """CPU of a job at one moment, in percent, from its readings; None when none of them tells."""
    return _first_number(values, CPU_PERCENT)


def memory_shown(values: Mapping[str, object]) -> float | None:
    """Memory of a job at one moment, good enough to look at: what several processes share may count in each."""
    return _first_number(values, MEMORY_MEAN)


def _first_number(values: Mapping[str, object], keys: Iterable[str]) -> float | None:
    for key in keys:
        value = values.get(key)
        if isinstance(value, (int, float)):
            return float(value)
    return None


def _group_peak(summary: Summary, described: Described) -> Figure | None:
    peak = summary.get("cgroup_mem_peak", {}).get("peak")
    held = summary.get("cgroup_held", {}).get("peak")
    cache = summary.get("cgroup_file", {}).get("peak")
    if peak is None or held is None or cache is None:
        # Not known how much of it was page cache.
        key = "cgroup_held" if held is not None else "cgroup_mem_peak"
        known = held if held is not None else peak
        return None if known is None else _figure(known, key, described, Quality.SAMPLED)
    if cache <= peak * _LITTLE_CACHE or held >= peak * (1 - _LITTLE_CACHE):
        return _figure(peak, "cgroup_mem_peak", described)
    explained = held + cache >= peak * (1 - _LITTLE_CACHE)
    return _figure(held, "cgroup_held", described, Quality.SAMPLED if explained else Quality.AT_LEAST)


def _single_quality(summary: Summary, described: Described) -> Quality:
    """The mark of the largest process is the job's own if it never had another."""
    missed = described.get("proc_processes", {}).get("quality") == Quality.AT_LEAST.value
    alone = summary.get("proc_processes", {}).get("peak", 2) <= 1 and not missed
    return Quality.EXACT if alone else Quality.AT_LEAST
