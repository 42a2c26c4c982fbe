"""rusage_: what wait4 returned for the job and for the orphans it left to be adopted."""

from __future__ import annotations

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

CPU = Measurement(
    "rusage_cpu_seconds", "seconds", Kind.COUNTER, Across.SUM, Quality.AT_LEAST,
    "CPU time of the job's processes, except those that were not waited for.",
)  # fmt: skip
USER = Measurement(
    "rusage_user_seconds", "seconds", Kind.COUNTER, Across.SUM, Quality.AT_LEAST,
    "The part of rusage_cpu_seconds in user space.",
)  # fmt: skip
SYSTEM = Measurement(
    "rusage_system_seconds", "seconds", Kind.COUNTER, Across.SUM, Quality.AT_LEAST,
    "The part of rusage_cpu_seconds in the kernel.",
)  # fmt: skip
MAXRSS = Measurement(
    "rusage_maxrss", "bytes", Kind.GAUGE, Across.MAX, Quality.AT_LEAST,
    "The largest resident size any one process of the job had, except those that were not waited for.", Gauge.MARK,
)  # fmt: skip

_NOISE = 1.1
"""A maximum of at most this many times the launcher's size is the launcher's own."""


class RusageCollector:
    name = "rusage"
    measurements = (CPU, USER, SYSTEM, MAXRSS)
    default = frozenset({CPU.key, USER.key, SYSTEM.key, MAXRSS.key})

    def check(self, machine: Machine) -> None:
        return

    def open(self, target: Target, wanted: frozenset[str]) -> RusageSource:
        if target.root_is_job:
            raise NoData("the kernel reports it only to the parent of a process")
        return RusageSource()


class RusageSource:
    def read(self, moment: Moment) -> Readings:
        return {}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        if not ending.reaped:
            return {}
        readings: Readings = {
            CPU.key: [round(process.user_seconds + process.system_seconds, 6) for process in ending.reaped],
            USER.key: [process.user_seconds for process in ending.reaped],
            SYSTEM.key: [process.system_seconds for process in ending.reaped],
        }
        largest = [
            process.maxrss_bytes for process in ending.reaped if process.maxrss_bytes > ending.launcher_bytes * _NOISE
        ]
        if largest:
            readings[MAXRSS.key] = largest
        return readings

    def close(self) -> None:
        return
