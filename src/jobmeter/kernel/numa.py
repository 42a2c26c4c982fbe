"""The NUMA nodes of the machine, and the node of each CPU (/sys/devices/system/node)."""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine, read_text


def parse_cpu_list(text: str) -> list[int]:
    """Parse a list of CPUs: `0-3,8` is 0, 1, 2, 3, 8."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        try:
            cpus += range(int(first), int(last or first) + 1)
        except ValueError:
            raise ValueError(f"not a list of CPUs: {text!r}") from None
    return cpus


def node_of_cpus(machine: Machine) -> dict[int, int]:
    """CPU → its node; empty if the kernel reports no nodes."""
    root = f"{machine.sys}/devices/system/node"
    try:
        names = [name for name in os.listdir(root) if name.startswith("node") and name[4:].isdecimal()]
    except OSError:
        return {}
    nodes: dict[int, int] = {}
    for name in names:
        try:
            nodes |= dict.fromkeys(parse_cpu_list(read_text(f"{root}/{name}/cpulist")), int(name[4:]))
        except OSError:
            continue
    return nodes
