"""hwmon_: the temperatures of the machine while the job runs."""

from __future__ import annotations

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import NoData
from jobmeter.kernel.hwmon import chips, temperatures
from jobmeter.kernel.machine import Machine
from jobmeter.model import Across, Kind, Measurement, Quality

_CPU_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal", "via_cputemp")
_DISK_CHIPS = ("nvme", "drivetemp")


def _temperature(key: str, help: str) -> Measurement:
    return Measurement(f"hwmon_{key}", "celsius", Kind.GAUGE, Across.MAX, Quality.SAMPLED, help)


CPU = _temperature("cpu_temperature", "Temperature of the hottest sensor of the machine's CPUs.")
DISK = _temperature("disk_temperature", "Temperature of the hottest sensor of the machine's disks.")
HOTTEST = _temperature("temperature", "Temperature of the hottest sensor of the machine.")


class HwmonCollector:
    name = "hwmon"
    measurements = (CPU, DISK, HOTTEST)
    default = frozenset(m.key for m in measurements)

    def check(self, machine: Machine) -> None:
        if not any(temperatures(folder, chip) for folder, chip in chips(machine).items()):
            raise NoData(f"no temperature sensors in {machine.sys}/class/hwmon")

    def open(self, target: Target, wanted: frozenset[str]) -> HwmonSource:
        self.check(target.machine)
        return HwmonSource(target.machine)


class HwmonSource:
    def __init__(self, machine: Machine) -> None:
        self._chips = chips(machine)

    def read(self, moment: Moment) -> Readings:
        readings: dict[str, list[float]] = {}
        for folder, chip in self._chips.items():
            for sensor in temperatures(folder, chip):
                key = CPU.key if chip in _CPU_CHIPS else DISK.key if chip in _DISK_CHIPS else None
                for one in (key, HOTTEST.key):
                    if one is not None:
                        readings.setdefault(one, []).append(max(sensor.celsius, 0.0))
        return {**readings}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return {}

    def close(self) -> None:
        return
