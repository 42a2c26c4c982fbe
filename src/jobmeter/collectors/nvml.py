"""nvml_: NVIDIA GPUs, as their driver reports them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.collectors.gpu_accounts import GpuAccounts, describe_gpus
from jobmeter.collectors.job_processes import JobProcesses
from jobmeter.errors import NoData
from jobmeter.kernel.gpu import GpuLost, GpuReading
from jobmeter.kernel.hardware import has_nvidia_driver
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.nvml import Driver
from jobmeter.model import Quality

if TYPE_CHECKING:
    from jobmeter.record.types import CollectorState, DeviceEntry, PeakEntry

KEYS = describe_gpus("nvml")
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_DEADLINE = 0.05
"""Seconds that a sample waits for the driver. An answer takes a fraction of a millisecond. After a late
answer, samples do not wait again until the driver has answered."""
_SILENT = 1.0
"""Seconds without an answer after which the driver is reported to hang; a busy machine may be late by less."""
_STARTED_WITHIN = 5.0
"""Seconds within which the driver must have started, if a key was requested by name."""


class NvmlCollector:
    name = "nvml"
    measurements = tuple(KEYS)
    default = frozenset(m.key for m in KEYS)

    def check(self, machine: Machine) -> None:
        if not has_nvidia_driver(machine):
            raise NoData("no NVIDIA driver on this machine")
        driver = _DriverThread()
        driver.started.wait(_STARTED_WITHIN)
        driver.close()
        if not driver.started.is_set():
            raise NoData(f"the NVIDIA driver did not answer within {_STARTED_WITHIN:g} s")
        if driver.refused is not None:
            raise driver.refused

    def open(self, target: Target, wanted: frozenset[str]) -> NvmlSource:
        if not has_nvidia_driver(target.machine):
            raise NoData("no NVIDIA driver on this machine")
        return NvmlSource(target)


class _DriverThread:
    """Calls the driver in a separate thread: a driver that hangs delays no other source."""

    def __init__(self, target: Target | None = None) -> None:
        """Start the driver, which may take seconds; with a target, its GPUs are read as soon as it has started."""
        self.started = threading.Event()  # or has refused to start
        self.answered = threading.Event()
        self.refused: NoData | None = None
        self.accounts: GpuAccounts | None = None
        self.readings: Readings = {}
        self.asked_at = time.monotonic()
        self.faults: dict[str, str] = {}
        self._target = target
        self._asked = threading.Event()
        self._closed = False
        threading.Thread(target=self._run, name="jobmeter-nvml", daemon=True).start()

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001 - whatever the client does, only these readings are lost
            why = f"{type(error).__name__}: {error}"
            if self.started.is_set():
                self.faults["failed"] = why
            else:
                self.refused = NoData(f"the NVIDIA client failed: {why}")
                self.started.set()

    def _serve(self) -> None:
        try:
            driver = Driver()
            gpus = driver.gpus()
        except NoData as reason:
            self.refused = reason
            self.started.set()
            return
        self.faults = driver.faults
        if self._target is not None:
            self.accounts = GpuAccounts(KEYS, gpus, JobProcesses(self._target), _VARIABLES, "nvml")
        self._asked.set()  # read at once: energy counts from the start
        self.started.set()
        while self._asked.wait() and not self._closed:
            self._asked.clear()
            readings: dict[str, GpuReading] = {}
            for gpu in list(gpus):
                try:
                    readings[gpu.uuid] = driver.read(gpu)
                except GpuLost as lost:
                    self.faults[gpu.label] = str(lost)
                    gpus.remove(gpu)
            if self.accounts is not None:
                self.readings = self.accounts.update(readings, time.monotonic())
            self.answered.set()
        driver.close()

    def ask(self) -> None:
        """Request another reading. The last one must have been answered."""
        self.asked_at = time.monotonic()
        self.answered.clear()
        self._asked.set()

    def close(self) -> None:
        self._closed = True
        self._asked.set()


class NvmlSource:
    def __init__(self, target: Target) -> None:
        self._driver = _DriverThread(target)
        self._late = True  # until the driver has started and answered

    def read(self, moment: Moment) -> Readings:
        driver = self._driver
        if self._late:
            if not driver.answered.is_set():
                return {}
            self._late = False
        driver.ask()
        if not driver.answered.wait(_DEADLINE):
            self._late = True
            return {}
        return dict(driver.readings)

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        self.read(moment)
        if self._late and self._driver.started.is_set() and not self._is_silent():
            self._driver.answered.wait(_SILENT)
        accounts = self._driver.accounts
        return accounts.counters() if accounts is not None else {}

    def missing(self) -> dict[str, str]:
        """All keys, if the driver does not start. Called only if a key was requested by name."""
        if not self._driver.started.wait(_STARTED_WITHIN):
            return dict.fromkeys(NvmlCollector.default, "the NVIDIA driver does not answer")
        refused = self._driver.refused
        return dict.fromkeys(NvmlCollector.default, str(refused)) if refused is not None else {}

    def state(self) -> CollectorState | None:
        """Whether the driver refused, failed or stopped answering after the start of the job; None if it did not."""
        driver = self._driver
        if driver.refused is not None:
            return {"available": False, "why": str(driver.refused)}
        if driver.faults:
            faults = (why if why.startswith(what) else f"{what}: {why}" for what, why in driver.faults.items())
            return {"available": True, "failed": "; ".join(faults)}
        if self._is_silent():
            silent = time.monotonic() - driver.asked_at
            return {"available": True, "failed": f"the NVIDIA driver has not answered for {silent:.1f} s"}
        return None

    def _is_silent(self) -> bool:
        driver = self._driver
        return self._late and not driver.answered.is_set() and time.monotonic() - driver.asked_at > _SILENT

    def incomplete(self) -> frozenset[str]:
        """All keys, if the driver stopped answering or had a fault."""
        return NvmlCollector.default if self._is_silent() or self._driver.faults else frozenset()

    def qualities(self) -> dict[str, Quality]:
        accounts = self._driver.accounts
        return accounts.qualities() if accounts is not None else {}

    def peaks(self, started: float) -> list[PeakEntry]:
        accounts = self._driver.accounts
        return accounts.peaks(started) if accounts is not None else []

    def devices(self) -> list[DeviceEntry]:
        accounts = self._driver.accounts
        return accounts.devices() if accounts is not None else []

    def close(self) -> None:
        self._driver.close()
