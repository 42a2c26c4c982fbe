"""The energy that CPUs and memory used, as they count it themselves (RAPL): /sys/class/powercap/intel-rapl:*.

AMD processors have the same files. A counter wraps around after some minutes to an hour of full load.
"""

from __future__ import annotations

import os

from jobmeter.kernel.machine import Machine, read_text
from jobmeter.light_typing import NamedTuple


class Zone(NamedTuple):
    """One energy counter."""

    folder: str
    kind: str  # package, core, uncore, dram, psys
    range_microjoules: int  # the counter starts over at 0 after this


def find_zones(machine: Machine) -> list[Zone]:
    """The counters of this machine. Raises ValueError if a range is not a number, OSError if it may not be read."""
    root = f"{machine.sys}/class/powercap"
    try:
        # intel-rapl-mmio counts a package a second time.
        names = sorted(name for name in os.listdir(root) if name.startswith("intel-rapl:"))
    except OSError:
        return []
    return [
        Zone(
            f"{root}/{name}",
            _kind(read_text(f"{root}/{name}/name")),
            int(read_text(f"{root}/{name}/max_energy_range_uj")),
        )
        for name in names
    ]


def _kind(name: str) -> str:
    """The kind of a zone: `package` for `package-1` and for `package-0-die-1`."""
    return name.strip().partition("-")[0]


def read_microjoules(zone: Zone) -> int:
    return int(read_text(f"{zone.folder}/energy_uj"))


def used_microjoules(before: int, now: int, zone: Zone) -> int:
    """The growth of a counter between two readings; it may have started over at 0 in between."""
    return now - before if now >= before else now + zone.range_microjoules - before
