"""rapl_: the energy of CPUs and memory, by their own counters, and the job's share of it."""

from __future__ import annotations

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.job_cpu import JobShare
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.powercap import Zone, find_zones, read_microjoules, used_microjoules
from jobmeter.model import Across, Kind, Measurement, Quality


def _counter(key: str, help: str, quality: Quality = Quality.EXACT) -> Measurement:
    return Measurement(f"rapl_{key}", "joules", Kind.COUNTER, Across.LAST, quality, help)


PACKAGE = _counter("package", "Energy of all processor packages of the machine while the job ran.")
CORE = _counter("core", "The part of rapl_package that their cores used, where it is counted.")
DRAM = _counter("dram", "Energy of the machine's memory while the job ran, where it is counted.")
ENERGY = _counter(
    "energy",
    "Energy of packages and memory that is the job's: its share of the machine's CPU time, from sample to sample.",
    Quality.SAMPLED,
)

_KEYS = {"package": PACKAGE.key, "core": CORE.key, "dram": DRAM.key}
_SHARED_OUT = ("package", "dram")
"""The kinds of which the job is charged its share. Cores are part of a package; `psys` includes all these and more."""


class RaplCollector:
    name = "rapl"
    measurements = (PACKAGE, CORE, DRAM, ENERGY)
    default = frozenset((PACKAGE.key, DRAM.key, ENERGY.key))

    def check(self, machine: Machine) -> None:
        _read(_zones(machine))

    def open(self, target: Target, wanted: frozenset[str]) -> RaplSource:
        return RaplSource(target, _zones(target.machine))


def _zones(machine: Machine) -> list[Zone]:
    try:
        zones = [zone for zone in find_zones(machine) if zone.kind in _KEYS]
    except (OSError, ValueError) as error:
        raise NoData(f"the energy counters cannot be read: {error}") from None
    if not zones:
        raise NoData(f"no energy counters (RAPL) in {machine.sys}/class/powercap")
    return zones


def _read(zones: list[Zone]) -> list[int]:
    """The counters of the zones. Raises NoData, with what to do about it, if they may not be read."""
    try:
        return [read_microjoules(zone) for zone in zones]
    except PermissionError as error:
        raise NoData(
            f"{error.filename}: only root may read it, because it can reveal what other programs compute. Where that "
            f"is no concern: chmod a+r {zones[0].folder.rpartition('/')[0]}/intel-rapl:*/energy_uj"
        ) from None
    except (OSError, ValueError) as error:
        raise NoData(f"the energy counters cannot be read: {error}") from None


class RaplSource:
    def __init__(self, target: Target, zones: list[Zone]) -> None:
        """Raises NoData if the counters may not be read."""
        self._zones = zones
        self._last = _read(zones)
        self._share = JobShare(target)
        self._microjoules = dict.fromkeys((zone.kind for zone in zones), 0)
        self._own = 0.0

    def read(self, moment: Moment) -> Readings:
        now = _read(self._zones)
        used = 0
        for zone, before, microjoules in zip(self._zones, self._last, now):
            grown = used_microjoules(before, microjoules, zone)
            self._microjoules[zone.kind] += grown
            used += grown if zone.kind in _SHARED_OUT else 0
        self._last = now
        self._own += used * self._share.update()[1]
        totals: Readings = {_KEYS[kind]: round(amount / 1e6, 6) for kind, amount in self._microjoules.items()}
        return {**totals, ENERGY.key: round(self._own / 1e6, 6)}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def close(self) -> None:
        self._share.close()
