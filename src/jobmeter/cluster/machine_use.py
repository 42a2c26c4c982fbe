"""What a whole machine uses: CPUs, memory, disks, network, load and pressure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from jobmeter.kernel import diskstats, hostfs, pressure
from jobmeter.kernel.machine import Machine

_PRESSURES = ("cpu", "memory", "io")


class MachineUse:
    """Reads the machine repeatedly. Rates are since the previous reading; the first reading has none."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._counters: dict[str, tuple[float, float]] = {}

    def read(self) -> dict[str, float]:
        """The values that can be read; others are absent."""
        values: dict[str, float] = {}
        self._rate(values, "used_cpus", lambda: hostfs.read_cpu_time(self._machine).busy)
        self._level(values, "used_memory_bytes", lambda: hostfs.read_memory_used(self._machine))
        self._level(values, "load1", lambda: hostfs.read_load1(self._machine))
        self._rate(values, "disk_read_bytes_per_second", lambda: diskstats.read_diskstats(self._machine).read)
        self._rate(values, "disk_write_bytes_per_second", lambda: diskstats.read_diskstats(self._machine).written)
        self._rate(values, "net_received_bytes_per_second", lambda: hostfs.read_network(self._machine)[0])
        self._rate(values, "net_sent_bytes_per_second", lambda: hostfs.read_network(self._machine)[1])
        for name in _PRESSURES:
            self._rate(values, f"{name}_pressure_percent", lambda name=name: self._pressure(name))  # type: ignore[misc]
        return values

    def _pressure(self, name: str) -> float:
        """The time that tasks have waited, in hundredths of a second: its rate is a percentage."""
        return 100 * pressure.read_pressure(self._machine, name)

    def _level(self, values: dict[str, float], key: str, read: Callable[[], float]) -> None:
        try:
            values[key] = read()
        except (OSError, ValueError):
            pass  # this kernel does not have it

    def _rate(self, values: dict[str, float], key: str, read: Callable[[], float]) -> None:
        try:
            now, total = time.monotonic(), read()
        except (OSError, ValueError):
            return  # this kernel does not have it
        before = self._counters.get(key)
        self._counters[key] = (now, total)
        # A counter that fell was reset: there is no rate.
        if before is not None and now > before[0] and total >= before[1]:
            values[key] = (total - before[1]) / (now - before[0])


def boot_id(machine: Machine) -> str:
    """An id that differs between machines, also inside containers; the host name if the kernel has none."""
    try:
        with open(f"{machine.proc}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return os.uname().nodename
