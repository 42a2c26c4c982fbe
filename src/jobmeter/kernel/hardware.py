"""Detects the hardware that a collector can read. Every run does this: a few calls of stat(2), and no import."""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine

_NVML = "libnvidia-ml.so.1"


def present_hardware(machine: Machine) -> list[str]:
    """The names of the collectors whose hardware this machine may have."""
    names = []
    if has_nvidia_driver(machine):
        names.append("nvml")
    if has_amd_compute(machine):
        names.append("rocm")
    if has_render_node(machine):
        names.append("drm")
    if os.path.exists(f"{machine.sys}/class/powercap/intel-rapl:0"):
        names.append("rapl")
    return names


def has_nvidia_driver(machine: Machine) -> bool:
    if os.path.exists(f"{machine.proc}/driver/nvidia"):
        return True
    # Where the driver is not part of this kernel, as in WSL, its library is in a folder of LD_LIBRARY_PATH.
    folders = os.environ.get("LD_LIBRARY_PATH", "")
    return bool(folders) and any(os.path.exists(f"{folder}/{_NVML}") for folder in folders.split(":") if folder)


def has_amd_compute(machine: Machine) -> bool:
    return os.path.exists(f"{machine.sys}/class/kfd/kfd")


def has_render_node(machine: Machine) -> bool:
    return os.path.exists(f"{machine.sys}/class/drm/renderD128")
