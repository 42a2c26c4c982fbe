"""How the headline figures are derived from measurements: the order of sources, and the quality of each figure.

`analyse.headline_table` lists the figures. This module computes them, except for those of memory, which
`analyse.headline_memory` computes. `summary` is the `measurements` part of a run record, `described` the descriptions
of its keys; both may come from another version of jobmeter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from jobmeter.light_typing import Any, NamedTuple
from jobmeter.model import Quality

CPU_SECONDS = (
    "block_cpu_seconds", "cgroup_cpu_seconds", "perf_cpu_seconds", "rusage_cpu_seconds", "proc_cpu_seconds",
    "psutil_cpu_seconds", "ps_cpu_seconds", "container_cpu_seconds",
)  # fmt: skip
# What other tools recorded for imported runs comes last.
OTHERS_CPU_SECONDS = ("slurm_cpu_seconds", "nextflow_cpu_seconds", "gnutime_cpu_seconds")
OTHERS_CPU_PERCENT = ("nextflow_cpu_percent", "duct_pcpu_total")
CPU_PERCENT = (
    "block_cpu_percent", "cgroup_cpu_percent", "perf_cpu_percent", "proc_cpu_percent", "psutil_cpu_percent", "ps_pdcpu",
    *OTHERS_CPU_PERCENT,
)  # fmt: skip
READ_BYTES = (
    "block_read_bytes", "proc_read_bytes", "cgroup_read_bytes", "container_block_read_bytes",
    "nextflow_read_bytes", "slurm_max_disk_read", "gnutime_read_bytes",
)  # fmt: skip
WRITE_BYTES = (
    "block_write_bytes", "proc_write_bytes", "cgroup_write_bytes", "container_block_write_bytes",
    "nextflow_write_bytes", "slurm_max_disk_write", "gnutime_write_bytes",
)  # fmt: skip
PROCESSES = ("block_processes", "proc_processes")
NETWORK_RX = ("netns_rx_bytes", "container_net_rx_bytes", "bpf_rx_bytes", "tcp_rx_bytes")
NETWORK_TX = ("netns_tx_bytes", "container_net_tx_bytes", "bpf_tx_bytes", "tcp_tx_bytes")
GPU_SECONDS = ("nvml_busy_seconds", "rocm_busy_seconds", "drm_busy_seconds")
GPU_MEMORY = ("nvml_memory", "rocm_memory", "drm_memory")
GPUS = ("nvml_gpus", "rocm_gpus", "drm_gpus")
CPU_ENERGY = ("rapl_energy", "tdp_energy")
GPU_ENERGY = ("nvml_energy", "rocm_energy")
ENERGY = (*CPU_ENERGY, *GPU_ENERGY)

_PERF_CPU = "perf_cpu_seconds"
_RUSAGE_CPU = "rusage_cpu_seconds"
_MORE = 1.005
TICK = 0.05
_RUSAGE_LAG = 0.01
"""A later source replaces an earlier one if it reports more than `_MORE` times as much plus these seconds: `TICK` for
sources that count in ticks, `_RUSAGE_LAG` for rusage. rusage is exact, and includes what a process uses between fork
and exec: perf was found to lack 5 % of a job that did nothing but switch between processes, on a busy machine."""
_AGREE = 1.03
"""Two sources of CPU time agree if they are within this ratio."""
_OUTER_CPU = "cgroup_outer_cpu_seconds"
_UNEXPLAINED, _UNEXPLAINED_SECONDS = 0.02, 0.002
"""The CPU time of a job is complete if that of the cgroup around it differs by at most this share plus these seconds.
The shepherd, too, uses CPU time in that cgroup: 0.1 to 0.7 ms were measured, and more if it waits for many orphans. The
job's own sources were found to agree with the cgroup to 0.3 %, also for thousands of short processes."""
_SHORTEST_SPAN = 0.1
"""Seconds. The start of a container is known to within some 10 ms: a shorter span has no mean CPU."""

_LEAST_TRUSTED = (Quality.ESTIMATED, Quality.SHARED, Quality.AT_LEAST, Quality.SAMPLED, Quality.EXACT)
_SAMPLED = Quality.SAMPLED.value

Figure = dict[str, Any]
"""`{"value": …, "from": key, "quality": …}`"""

Summary = dict[str, dict[str, Any]]
Described = dict[str, dict[str, str]]


class CpuSpan(NamedTuple):
    """The span of the mean CPU of a run, if that is not its whole wall time: its job runs in a container."""

    seconds: float
    cpu_before: float = 0.0  # CPU time used before the span, by the runtime that prepares the container
    most_percent: float = math.inf  # upper bound: all CPUs that exist


class Measured:
    """The measurements of a run, from which its headline figures are derived."""

    __slots__ = ("cpu_span", "described", "shared_figures", "summary", "wall_seconds")

    def __init__(
        self, summary: Summary, described: Described, wall_seconds: float, cpu_span: CpuSpan | None = None
    ) -> None:
        self.summary = summary
        self.described = described
        self.wall_seconds = wall_seconds
        self.cpu_span = cpu_span  # None: the mean CPU is taken over the wall time
        self.shared_figures: dict[str, Figure | None] = {}  # cache of those that several others are made of


def cpu_seconds(measured: Measured) -> Figure | None:
    """CPU time: what jobmeter measured, else what another tool recorded. Other sources know no part of a process."""
    if "cpu" not in measured.shared_figures:
        figure = first_figure(measured, ("block_cpu_seconds",), "total")
        figure = figure or _cpu_seconds(measured.summary, measured.described)
        measured.shared_figures["cpu"] = figure or first_figure(measured, OTHERS_CPU_SECONDS, "total")
    return measured.shared_figures["cpu"]


def cpu_mean(measured: Measured) -> Figure | None:
    """CPU time over time, else a mean that another tool recorded."""
    return _cpu_mean(measured) or first_figure(measured, OTHERS_CPU_PERCENT, "mean")


def cpu_peak(measured: Measured) -> Figure | None:
    """The highest rate. A job too short for one has its mean: the peak was at least that."""
    peak = first_figure(measured, _by_trust(CPU_PERCENT, measured.described), "peak")
    mean = _cpu_mean(measured)
    if mean is not None and (peak is None or peak["value"] < mean["value"]):
        return {**mean, "quality": Quality.AT_LEAST.value}
    return peak


def energy(measured: Measured) -> Figure | None:
    """The energy of CPUs and GPUs together, as far as it is known; its quality is that of the least trusted part."""
    if measured.summary.keys().isdisjoint(ENERGY):
        return None
    sources = (CPU_ENERGY, *((key,) for key in GPU_ENERGY))
    parts = [part for keys in sources if (part := first_figure(measured, keys, "total")) is not None]
    if not parts:
        return None
    quality = next((q.value for q in _LEAST_TRUSTED if any(part["quality"] == q.value for part in parts)), "sampled")
    source = "+".join(part["from"] for part in parts)
    return {"value": round(sum(part["value"] for part in parts), 3), "from": source, "quality": quality}


def instructions_per_cycle(measured: Measured) -> Figure | None:
    instructions = first_figure(measured, ("perf_instructions",), "total")
    cycles = first_figure(measured, ("perf_cycles",), "total")
    if instructions is None or cycles is None or not cycles["value"]:
        return None
    return {**instructions, "value": round(instructions["value"] / cycles["value"], 3)}


def first_figure(measured: Measured, keys: Iterable[str], statistic: str) -> Figure | None:
    """The first of these measurements that has the statistic; None when none has."""
    return first_in(measured.summary, measured.described, keys, statistic)


def _cpu_mean(measured: Measured) -> Figure | None:
    if "cpu mean" not in measured.shared_figures:
        measured.shared_figures["cpu mean"] = _rate(cpu_seconds(measured), measured.wall_seconds, measured.cpu_span)
    return measured.shared_figures["cpu mean"]


def _rate(cpu: Figure | None, wall_seconds: float, span: CpuSpan | None) -> Figure | None:
    """The mean CPU in percent, over the span or else the wall time; None if it is unknown, or the span is too short."""
    if cpu is None or wall_seconds <= 0:
        return None
    if span is None:
        return {**cpu, "value": round(100 * cpu["value"] / wall_seconds, 2)}
    if span.seconds < _SHORTEST_SPAN:
        return None
    percent = 100 * max(cpu["value"] - span.cpu_before, 0.0) / span.seconds
    return {**cpu, "value": round(min(percent, span.most_percent), 2)}


def first_in(summary: Summary, described: Described, keys: Iterable[str], field: str) -> Figure | None:
    """The first of these measurements that has the statistic `field`; None when none has."""
    for key in keys:
        entry = summary.get(key)
        if entry is not None and field in entry:
            return make_figure(entry[field], key, described)
    return None


def make_figure(value: float, key: str, described: Described, quality: Quality | None = None) -> Figure:
    """A figure from one source, with the quality of that source unless another is given."""
    word = quality.value if quality else described.get(key, {}).get("quality", _SAMPLED)
    return {"value": value, "from": key, "quality": word}


def _is_at_least(key: str, described: Described) -> bool:
    return bool(described.get(key, {}).get("quality") == Quality.AT_LEAST.value)


def _by_trust(keys: Sequence[str], described: Described) -> Sequence[str]:
    """The keys in order of preference, with perf last if its quality is "at least": it may have been stopped early."""
    if described.keys().isdisjoint(keys):
        return keys
    uncertain = [key for key in keys if key in described and key.startswith("perf_") and _is_at_least(key, described)]
    return [*(key for key in keys if key not in uncertain), *uncertain] if uncertain else keys


def _cpu_seconds(summary: Summary, described: Described) -> Figure | None:
    """CPU time by the first source in order of preference, or by a later one that reports clearly more.

    Each source can miss something: perf does not follow a setuid program and does not see all of a fork, and a process
    can move out of the cgroup.
    """
    first = best = None
    for key in _by_trust(CPU_SECONDS, described):
        if "total" not in summary.get(key, {}):
            continue
        lag = _RUSAGE_LAG if key == _RUSAGE_CPU else TICK
        figure = first_in(summary, described, (key,), "total") if key != _PERF_CPU else _perf_cpu(summary, described)
        if first is None or best is None:
            first = best = figure
        elif figure is not None and figure["value"] > best["value"] * _MORE + lag:
            best = figure
    if first is not None and best is not None and best["value"] <= first["value"] * _AGREE:
        best = {**best, "quality": first["quality"]}
    if best is not None and best["quality"] == Quality.AT_LEAST.value and _is_all(best["value"], summary, described):
        best = {**best, "quality": Quality.EXACT.value}
    return best


def _is_all(cpu_seconds: float, summary: Summary, described: Described) -> bool:
    """Whether the cgroup around the job used the same CPU time: then no process can be missing.

    If the cgroup used clearly less, a process of the job has left it, and it is no upper bound.
    """
    bound = summary.get(_OUTER_CPU, {}).get("total")
    if bound is None or _is_at_least(_OUTER_CPU, described):
        return False
    return bool(abs(bound - cpu_seconds) <= cpu_seconds * _UNEXPLAINED + _UNEXPLAINED_SECONDS)


def _perf_cpu(summary: Summary, described: Described) -> Figure:
    """CPU time that perf counted, without what a hypervisor may have stolen, unless another source confirms it.

    The clock of perf runs on while the hypervisor has the CPU, those of the other sources do not. The count is limited
    to that of the cgroup around the job, unless another source exceeds the cgroup, too: then a process has left it.
    """
    others = [summary.get(key, {}).get("total", 0.0) for key in CPU_SECONDS if key != _PERF_CPU]
    counted = summary[_PERF_CPU]["total"]
    bound = summary.get(_OUTER_CPU, {}).get("total")
    if bound is not None and not _is_at_least(_OUTER_CPU, described) and bound >= max(others):
        counted = min(counted, bound)
    stolen = min(summary.get("perf_stolen_seconds", {}).get("total", 0.0), counted)
    sure = round(max([counted - stolen, *(min(total, counted) for total in others)]), 6)
    if counted <= sure * _AGREE:
        return make_figure(counted if not stolen else sure, _PERF_CPU, described)
    return make_figure(sure, _PERF_CPU, described, Quality.AT_LEAST)


def cpu_now(values: Mapping[str, object]) -> float | None:
    """CPU of a job at one moment, in percent, from its readings; None if no reading has it."""
    return first_number(values, CPU_PERCENT)


def first_number(values: Mapping[str, object], keys: Iterable[str]) -> float | None:
    """The first of these readings that exists and is a number; None if there is none."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, (int, float)):
            return float(value)
    return None
