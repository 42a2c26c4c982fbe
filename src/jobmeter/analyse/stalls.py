"""What a run waited for: how its time was spent, and the findings on that.

With a cgroup of version 2 the kernel counts the time in which some process waited (PSI). Else there are the waits that
the scheduler counts for each thread, and the observed waits for a disk; waits for memory are then not known.
"""

from __future__ import annotations

from jobmeter.analyse.finding import Finding
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.record.read import figure_value, measured
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_SHORTEST = 2.0
"""Seconds. A shorter run has no findings about its waits."""
_MUCH = 0.2
"""Share of the time from which on a wait is reported."""
_ALL = 0.8
"""Share of the CPUs. If the job uses this much, its threads wait for one another; if less, for other jobs."""
_FAULTS = 50.0
"""Major page faults a second, from which on a job with swapped-out memory is reported as swapping."""
_SWAPPED = 0.05
"""Share of the job's memory that must be swapped out for that."""
_GPU_IDLE, _CPU_FULL = 50.0, 90.0
"""Percent. A GPU that is busy for less than the first waits for the CPU, if the CPU is busy for the second or more."""


def time_split(record: Record) -> dict[str, float]:
    """Shares of the wall time, which add up to 1: running, runnable, disk, memory, idle; empty if not known.

    A job with several processes counts as one: time in which one waited for memory or a disk comes first, as if none
    had run at that time.
    """
    wall, cpu = record.get("wall_seconds") or 0.0, figure_value(record, "cpu_seconds")
    waited, disk, memory = _waits(record)
    if not wall or cpu is None or (waited is None and disk is None):
        return {}
    left = 1.0
    shares = {}
    for name, seconds in (
        ("memory", memory or 0.0),
        ("disk", disk or 0.0),
        ("running", cpu),
        ("runnable", waited or 0.0),
    ):
        shares[name] = min(seconds / wall, left)
        left -= shares[name]
    order = ("running", "runnable", "disk", "memory")
    return {**{name: shares[name] for name in order}, "idle": max(left, 0.0)}


def _waits(record: Record) -> tuple[float | None, float | None, float | None]:
    """Seconds of waits for a CPU, a disk, memory; None: not measured."""
    cpu, disk, memory = (
        measured(record, f"cgroup_{name}_pressure_seconds").get("total") for name in ("cpu", "io", "mem")
    )
    if cpu is None:
        cpu = measured(record, "proc_run_delay_seconds").get("total")
    if disk is None:
        disk = measured(record, "proc_disk_wait_seconds").get("total")
    return cpu, disk, memory


def stall_findings(record: Record) -> list[Finding]:
    """The findings about waits; none for a short run, nor about what was not measured."""
    wall = record.get("wall_seconds") or 0.0
    if wall < _SHORTEST:
        return []
    split = time_split(record)
    waits = [
        Finding(f"waits_{name}", "hint", f"It waited for {words} {text(100 * split[name], 'percent')} of the time.")
        for name, words in (("disk", "disk"), ("memory", "memory"))
        if split.get(name, 0.0) >= _MUCH
    ]
    return [*waits, *_waits_for_cpu(record, wall), *_swapping(record, wall), *_gpu_waits(record)]


def _waits_for_cpu(record: Record, wall: float) -> list[Finding]:
    """A finding if threads waited for a CPU, because the job has too many of them or because of other jobs."""
    delay = measured(record, "proc_run_delay_seconds").get("total")
    used, cpus = figure_value(record, "cpu_seconds"), _cpus(record)
    if delay is None or used is None or not cpus:
        return []
    waiting, running = delay / wall, used / wall
    if running >= _ALL * cpus and waiting >= cpus / 2:
        threads = round(waiting + running)
        on = f"{text(cpus, 'count')} CPU{'s' * (cpus != 1)}"
        return [Finding("oversubscribed", "hint", f"It is oversubscribed: {threads} threads on {on}.")]
    if running < _ALL * cpus and waiting >= _MUCH and waiting >= _MUCH * running:
        share = text(100 * min(delay / (delay + used), 1.0), "percent")
        return [
            Finding("waits_cpu", "hint", f"Its threads waited for a CPU {share} of the time in which they could run.")
        ]
    return []


def _cpus(record: Record) -> float:
    """The CPUs that the job could use; 0 if not known."""
    requested = record["requirement"].get("cpus") if "cpus" in record.get("enforced", []) else None
    return requested or record.get("host", {}).get("cpus", 0)


def _swapping(record: Record, wall: float) -> list[Finding]:
    swapped = max(measured(record, key).get("peak", 0) for key in ("cgroup_swap", "proc_swap_total"))
    memory = figure_value(record, "memory_peak_bytes") or 0.0
    faults = measured(record, "proc_major_faults").get("total", 0) / wall
    if not swapped or swapped < _SWAPPED * memory or faults < _FAULTS:
        return []
    words = f"It was swapping: {text(swapped, 'bytes')} swapped out, {text(faults, 'count')} page faults a second."
    return [Finding("swapping", "problem", words)]


def _gpu_waits(record: Record) -> list[Finding]:
    """A finding if the GPU works little while the CPU works all the time."""
    wall, busy, cpu = (
        record.get("wall_seconds") or 0.0,
        figure_value(record, "gpu_seconds"),
        figure_value(record, "cpu_mean_percent"),
    )
    gpus = max(len(record.get("devices", [])), 1)
    if not busy or cpu is None or cpu < _CPU_FULL or 100 * busy / wall / gpus >= _GPU_IDLE:
        return []
    share = text(100 * busy / wall / gpus, "percent")
    return [
        Finding(
            "gpu_waits",
            "hint",
            f"Its GPU waits for the CPU: it worked {share} of the time, the CPU {text(cpu, 'percent')}.",
        )
    ]
