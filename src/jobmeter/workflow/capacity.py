"""What the jobs of a workflow that run at one time may ask for together."""

from __future__ import annotations

import os
from typing import NamedTuple

from jobmeter.kernel.cgroup.limits import cpus_allowed, memory_allowed
from jobmeter.kernel.machine import THIS_MACHINE, Machine


class Capacity(NamedTuple):
    cpus: float
    memory_bytes: int | None  # None: not known, so not minded
    gpus: int = 0


def machine_capacity(
    cpus: float | None = None,
    memory_bytes: int | None = None,
    gpus: int | None = None,
    machine: Machine = THIS_MACHINE,
) -> Capacity:
    """What is given, and for the rest what this machine has and the cgroups around us allow."""
    return Capacity(
        cpus_allowed(machine) if cpus is None else cpus,
        memory_allowed(machine) if memory_bytes is None else memory_bytes,
        gpu_count(machine) if gpus is None else gpus,
    )


def gpu_count(machine: Machine) -> int:
    """How many GPUs the NVIDIA driver tells of."""
    try:
        return len(os.listdir(f"{machine.proc}/driver/nvidia/gpus"))
    except OSError:
        return 0
