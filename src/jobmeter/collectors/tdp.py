"""tdp_: an estimate of the job's energy, where nothing counts it, from the power of the machine at full load."""

from __future__ import annotations

import os

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.job_cpu import JobShare
from jobmeter.errors import NoData, UsageError
from jobmeter.kernel.machine import Machine
from jobmeter.model import Across, Kind, Measurement, Quality
from jobmeter.settings import resolve

ENERGY = Measurement(
    "tdp_energy", "joules", Kind.COUNTER, Across.LAST, Quality.ESTIMATED,
    "Estimate: the setting cpu_watts, divided by the CPUs of the machine, times the job's CPU time.",
)  # fmt: skip


class TdpCollector:
    name = "tdp"
    measurements = (ENERGY,)
    default = frozenset((ENERGY.key,))

    def check(self, machine: Machine) -> None:
        _watts()

    def open(self, target: Target, wanted: frozenset[str]) -> TdpSource:
        return TdpSource(target, _watts())


def _watts() -> float:
    try:
        watts: float | None = resolve("cpu_watts")
    except UsageError as error:
        raise NoData(str(error)) from None
    if watts is None:
        raise NoData("needs the power of all CPUs at full load: cpu_watts = 95 in jobmeter.toml, or JOBMETER_CPU_WATTS")
    return watts


class TdpSource:
    def __init__(self, target: Target, watts: float) -> None:
        self._share = JobShare(target)
        self._watts_per_cpu = watts / (os.cpu_count() or 1)
        self._seconds = 0.0

    def read(self, moment: Moment) -> Readings:
        self._seconds += self._share.update()[0]
        return {ENERGY.key: round(self._seconds * self._watts_per_cpu, 6)}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self.read(moment)

    def close(self) -> None:
        self._share.close()
