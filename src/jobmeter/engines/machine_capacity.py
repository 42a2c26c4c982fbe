"""What jobs may request together on this machine."""

from __future__ import annotations

import os

from jobmeter.engines.contract import Capacity
from jobmeter.kernel.cgroup.limits import cpus_allowed, memory_allowed
from jobmeter.kernel.machine import THIS_MACHINE, Machine


def machine_capacity(machine: Machine = THIS_MACHINE) -> Capacity:
    """What this machine has, within the limits of the cgroups that this process is in."""
    return Capacity(cpus_allowed(machine), memory_allowed(machine), gpu_count(machine))


def gpu_count(machine: Machine) -> int:
    """How many GPUs the NVIDIA driver lists."""
    try:
        return len(os.listdir(f"{machine.proc}/driver/nvidia/gpus"))
    except OSError:
        return 0
