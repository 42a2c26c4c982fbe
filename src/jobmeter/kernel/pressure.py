"""/proc/pressure: how long tasks of the machine waited for CPUs, memory or disks (Documentation/accounting/psi.rst)."""

from __future__ import annotations

from jobmeter.kernel.machine import Machine, read_text


def parse_pressure(content: str) -> float:
    """Parse a file of /proc/pressure: seconds since boot in which some task waited."""
    for line in content.splitlines():
        if line.startswith("some "):
            try:
                return int(line.rpartition("total=")[2]) / 1e6
            except ValueError:
                break
    raise ValueError(f"not a file of /proc/pressure: {content!r}")


def read_pressure(machine: Machine, resource: str) -> float:
    """Seconds since boot in which some task waited for `resource`: cpu, memory or io. Raises OSError if not counted."""
    return parse_pressure(read_text(f"{machine.proc}/pressure/{resource}"))
