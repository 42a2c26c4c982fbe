"""The memory of a job: its peak, mean and minimum from what was measured, and what it holds at one moment."""

from __future__ import annotations

from collections.abc import Mapping

from jobmeter.analyse.headline import (
    TICK,
    Described,
    Figure,
    Measured,
    Summary,
    first_figure,
    first_in,
    first_number,
    make_figure,
)
from jobmeter.model import Quality

MEMORY_TOTAL = (
    "block_mem_peak", "proc_pss_total", "psutil_pss_total", "proc_rss_total", "psutil_rss_total", "ps_rss_total",
    # A container runtime counts page cache too.
    "container_mem_peak", "container_mem_current",
    "slurm_max_rss", "nextflow_peak_rss", "nextflow_rss", "duct_rss_total",
)  # fmt: skip
MEMORY_MEAN = ("block_memory", "cgroup_held", "proc_memory", *MEMORY_TOTAL)
MEMORY_PEAK = (
    "cgroup_mem_peak", "cgroup_held", *MEMORY_TOTAL, "proc_hwm_max", "rusage_maxrss", "gnutime_maxrss",
)  # fmt: skip
SINGLE_PROCESS = ("rusage_maxrss", "proc_hwm_max", "gnutime_maxrss")
HELD_WITH_UNCOUNTED = "proc_held_total"
HUGETLB = "proc_hugetlb_total"
_RESIDENT = ("proc_memory", "proc_pss_total", "psutil_pss_total", "proc_rss_total")

_LITTLE_CACHE = 0.02
_LACKING = 1.05
"""A figure is "at least" if something else shows this many times as much."""
_KERNEL_MEMORY = 90 << 10
"""Bytes that the kernel needs for a process: its stack, its tables; measured with 500 sleeping processes."""


def memory_peak(measured: Measured) -> Figure | None:
    """The most memory the job held that could not be reclaimed."""
    if "peak" not in measured.shared_figures:
        # Other sources read high-water marks of processes, which cover their whole life, not just the block.
        figure = first_figure(measured, ("block_mem_peak",), "peak")
        measured.shared_figures["peak"] = figure or _memory_peak(measured.summary, measured.described)
    return measured.shared_figures["peak"]


def memory_mean(measured: Measured) -> Figure | None:
    return _memory_level(measured.summary, measured.described, memory_peak(measured), "mean")


def memory_min(measured: Measured) -> Figure | None:
    return _memory_level(measured.summary, measured.described, memory_peak(measured), "min")


def _memory_peak(summary: Summary, described: Described) -> Figure | None:
    """The most memory the job held that could not be reclaimed.

    The peak of a cgroup is exact, but counts page cache. If there was hardly any page cache, it is the answer;
    else it is an upper bound, and the sampled levels are a lower bound.
    """
    if summary.get("cgroup_oom_kills", {}).get("total", 0) > 0:
        # The job met its limit, which counts as the cgroup does: resident file pages may be charged to other cgroups.
        return first_in(summary, described, ("cgroup_mem_peak",), "peak")
    figure = _group_peak(summary, described) or first_in(summary, described, MEMORY_TOTAL, "peak")
    for key in SINGLE_PROCESS:
        size = summary.get(key, {}).get("peak")
        if size is not None and (figure is None or size > figure["value"]):
            figure = make_figure(size, key, described, _single_quality(summary, described))
    held = summary.get(HELD_WITH_UNCOUNTED, {}).get("peak")
    if held is not None and (figure is None or held > figure["value"]):
        figure = make_figure(held, HELD_WITH_UNCOUNTED, described)
    return figure and {**figure, "quality": _peak_quality(figure, summary, described).value}


def _peak_quality(figure: Figure, summary: Summary, described: Described) -> Quality:
    """The quality of a memory peak, given the other measurements: see docs/accuracy.md, "Where jobmeter says exact"."""
    grouped = "cgroup_mem_peak" in summary
    if _lacks_memory_of_group(figure, summary, described) if grouped else _lacks_memory(figure, summary, described):
        return Quality.AT_LEAST
    quality = Quality(figure["quality"])
    if quality is Quality.EXACT and HUGETLB in summary and "cgroup_hugetlb_peak" not in summary:
        return Quality.SAMPLED  # the machine has huge pages, and nothing counts those of a job between samples
    return quality


def _lacks_memory_of_group(figure: Figure, summary: Summary, described: Described) -> bool:
    """Whether some of the job's memory was charged to another cgroup, or to none."""
    peak = summary["cgroup_mem_peak"].get("peak", 0)
    huge = summary.get("cgroup_hugetlb_peak", {}).get("peak", 0)
    charged = summary.get("cgroup_cpu_seconds", {}).get("total")
    waited_for = summary.get("rusage_cpu_seconds", {}).get("total", 0)
    return (
        described.get("cgroup_mem_peak", {}).get("quality") == Quality.AT_LEAST.value
        or (huge > 0 and figure["value"] < (peak + huge) * (1 - _LITTLE_CACHE))
        # A process that used CPU time outside the cgroup had its memory there too.
        or (charged is not None and waited_for > charged * _LACKING + TICK)
    )


def _lacks_memory(figure: Figure, summary: Summary, described: Described) -> bool:
    """Whether a job without a cgroup has memory that no figure contains: shared memory, or memory of the kernel."""
    processes = summary.get("proc_processes", {}).get("peak", 1)
    kernel = processes * _KERNEL_MEMORY if processes > 1 else 0
    return bool(
        described.get("proc_rss_total", {}).get("quality") == Quality.AT_LEAST.value
        or figure["value"] + kernel > figure["value"] * _LACKING
    )


def _memory_level(summary: Summary, described: Described, peak: Figure | None, field: str) -> Figure | None:
    """The mean or the minimum of memory, counted as the peak is if that was measured, and never above the peak.

    The high-water mark of a process counts the files it maps, which a cgroup charges to their first reader.
    """
    keys: tuple[str, ...] = MEMORY_MEAN
    if peak is not None and peak["from"] == HELD_WITH_UNCOUNTED:
        keys = (HELD_WITH_UNCOUNTED, *MEMORY_MEAN)
    elif peak is not None and peak["from"] in SINGLE_PROCESS:
        keys = (*(_RESIDENT if _is_alone(summary) else _RESIDENT[:-1]), *MEMORY_MEAN)
    for key in keys:
        if key not in summary:
            continue
        figure = first_in(summary, described, (key,), field)
        if figure is not None and (peak is None or figure["value"] <= peak["value"]):
            return figure
    return None


def _group_peak(summary: Summary, described: Described) -> Figure | None:
    peak = summary.get("cgroup_mem_peak", {}).get("peak")
    held = summary.get("cgroup_held", {}).get("peak")
    cache = summary.get("cgroup_file", {}).get("peak")
    if peak is None or held is None or cache is None:
        # It is not known how much of the peak was page cache.
        key = "cgroup_held" if held is not None else "cgroup_mem_peak"
        peak_bytes = held if held is not None else peak
        return None if peak_bytes is None else make_figure(peak_bytes, key, described, Quality.SAMPLED)
    if cache <= peak * _LITTLE_CACHE or held >= peak * (1 - _LITTLE_CACHE):
        return make_figure(peak, "cgroup_mem_peak", described)
    explained = held + cache >= peak * (1 - _LITTLE_CACHE)
    return make_figure(held, "cgroup_held", described, Quality.SAMPLED if explained else Quality.AT_LEAST)


def _single_quality(summary: Summary, described: Described) -> Quality:
    """The quality of the high-water mark of the largest process: it is that of the job if there was no other process.

    Without a cgroup it is not exact: no process's resident size contains a memfd, a pipe or page tables.
    """
    missed = described.get("proc_processes", {}).get("quality") == Quality.AT_LEAST.value
    if missed or not _is_alone(summary):
        return Quality.AT_LEAST
    return Quality.EXACT if "cgroup_mem_peak" in summary else Quality.SAMPLED


def _is_alone(summary: Summary) -> bool:
    """Whether the job never had more than one process."""
    return bool(summary.get("proc_processes", {}).get("peak", 2) <= 1)


def memory_now(values: Mapping[str, object]) -> float | None:
    """Memory of a job at one moment, from its readings; None when it is not known well enough to act on.

    Memory that several processes share is in the resident size of each, so a sum of resident sizes is not used.
    """
    for key in MEMORY_TOTAL:
        value = values.get(key)
        if isinstance(value, (int, float)) and ("_pss_" in key or values.get("proc_processes", 1) == 1):
            return float(value)
    return None


def memory_shown(values: Mapping[str, object]) -> float | None:
    """Memory of a job at one moment, for display only: what several processes share may be counted in each."""
    return first_number(values, MEMORY_MEAN)
