"""rocm_: AMD GPUs, as their driver reports them in sysfs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.gpu_accounts import GpuAccounts, describe_gpus
from jobmeter.collectors.job_processes import JobProcesses
from jobmeter.errors import NoData
from jobmeter.kernel.amdgpu import find_gpus, read_gpu
from jobmeter.kernel.gpu import GpuLost, GpuReading
from jobmeter.kernel.machine import Machine
from jobmeter.model import Quality

if TYPE_CHECKING:
    from jobmeter.record.types import CollectorState, DeviceEntry, PeakEntry

_KEYS = describe_gpus("rocm")
_VARIABLES = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


class RocmCollector:
    name = "rocm"
    # The driver does not say in sysfs what slowed a GPU down.
    measurements = tuple(m for m in _KEYS if m not in (_KEYS.throttled, _KEYS.clocks))
    default = frozenset(m.key for m in measurements)

    def check(self, machine: Machine) -> None:
        if not find_gpus(machine):
            raise NoData("no AMD GPU with a compute driver on this machine")

    def open(self, target: Target, wanted: frozenset[str]) -> RocmSource:
        self.check(target.machine)
        return RocmSource(target)


class RocmSource:
    def __init__(self, target: Target) -> None:
        self._machine = target.machine
        self._gpus = find_gpus(target.machine)
        self._accounts = GpuAccounts(_KEYS, list(self._gpus), JobProcesses(target), _VARIABLES, "rocm")
        self._lost: list[str] = []
        self.read(Moment(time.monotonic()))  # energy counts from now on

    def read(self, moment: Moment) -> Readings:
        readings: dict[str, GpuReading] = {}
        for gpu in list(self._gpus):
            try:
                readings[gpu.uuid] = read_gpu(self._machine, gpu)
            except GpuLost as lost:
                self._lost.append(str(lost))
                self._gpus.remove(gpu)
        return self._accounts.update(readings, time.monotonic())

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        self.read(moment)
        return self._accounts.counters()

    def state(self) -> CollectorState | None:
        return {"available": True, "failed": "; ".join(self._lost)} if self._lost else None

    def qualities(self) -> dict[str, Quality]:
        return self._accounts.qualities()

    def peaks(self, started: float) -> list[PeakEntry]:
        return self._accounts.peaks(started)

    def devices(self) -> list[DeviceEntry]:
        return self._accounts.devices()

    def close(self) -> None:
        return
