"""The resources that a job requests: memory, CPUs, time and GPUs."""

from __future__ import annotations

from jobmeter.light_typing import NamedTuple
from jobmeter.model import Status


class Resource(NamedTuple):
    """One resource, and the fields of a stored run that describe it."""

    name: str  # for people
    key: str  # memory, cpus, runtime, gpus
    unit: str
    field: str  # of a requirement
    requested: str  # the field with what was requested
    each: float  # how many of the unit are in one of the request: 100 percent in one CPU
    used: str  # the field with what was used
    quality: str  # the field with the quality of that; "": there is none
    limit_status: Status | None  # the status of a run that reached this limit
    cause: str  # the same in words


MEMORY = Resource(
    "Memory", "memory", "bytes", "memory_bytes", "requirement_memory_bytes", 1, "memory_peak_bytes", "memory_quality",
    Status.OOM, "out of memory",
)  # fmt: skip
CPU = Resource("CPU", "cpus", "percent", "cpus", "requirement_cpus", 100, "cpu_peak_percent", "cpu_quality", None, "")
RUNTIME = Resource(
    "Runtime", "runtime", "seconds", "runtime_seconds", "requirement_runtime_seconds", 1, "wall_seconds", "",
    Status.TIMEOUT, "timeout",
)  # fmt: skip
GPU = Resource("GPU", "gpus", "count", "gpus", "requirement_gpus", 1, "gpus_peak", "", None, "")
GPU_MEMORY = Resource(
    "GPU memory", "gpu_memory", "bytes", "gpu_memory_bytes", "requirement_gpu_memory_bytes", 1, "gpu_memory_peak_bytes",
    "", None, "",
)  # fmt: skip
"""The memory that a GPU must have: it is advised if it was measured. No run requests it."""
RESOURCES = (MEMORY, CPU, RUNTIME, GPU)
