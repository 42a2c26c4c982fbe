"""What the NVIDIA GPUs of a machine do. Their driver can block for ever, so a separate thread calls it."""

from __future__ import annotations

import threading

from jobmeter.errors import NoData
from jobmeter.kernel.gpu import GpuLost
from jobmeter.kernel.hardware import has_nvidia_driver
from jobmeter.kernel.machine import Machine

_DEADLINE = 0.2
"""Seconds that a reading waits for the driver. After a late answer, readings do not wait again until the driver has
answered."""


class GpuUse:
    """Reads the GPUs repeatedly. Without a driver, every reading is empty."""

    def __init__(self, machine: Machine) -> None:
        self._values: dict[str, float] = {}
        self._asked, self._answered = threading.Event(), threading.Event()
        self._answered.set()  # nothing was asked yet
        self._closed = False
        self._present = has_nvidia_driver(machine)
        if self._present:
            threading.Thread(target=self._serve, name="jobmeter-gpus", daemon=True).start()

    def read(self) -> dict[str, float]:
        """`used_gpus`, the number of GPUs, and their memory; empty while the driver does not answer."""
        if not self._present:
            return {}
        if self._answered.is_set():  # else the driver still works on the last request
            self._answered.clear()
            self._asked.set()
            self._answered.wait(_DEADLINE)
        return dict(self._values) if self._answered.is_set() else {}

    def _serve(self) -> None:
        from jobmeter.kernel.nvml import Driver

        try:
            driver = Driver()
            gpus = driver.gpus()
        except NoData:
            self._present = False
            self._answered.set()
            return
        while not self._closed:
            if not self._asked.wait(1.0):
                continue
            self._asked.clear()
            busy: list[float] = []
            used: list[int] = []
            total: list[int] = []
            for gpu in gpus:
                try:
                    reading = driver.read(gpu)
                except GpuLost:
                    continue
                busy += [] if reading.busy_percent is None else [reading.busy_percent]
                used += [] if reading.memory_used is None else [reading.memory_used]
                total += [] if reading.memory_total is None else [reading.memory_total]
            values: dict[str, float] = {"capacity_gpus": float(len(gpus))}
            if busy:
                values["used_gpus"] = sum(busy) / 100
            if used and total:
                values["used_gpu_memory_bytes"], values["capacity_gpu_memory_bytes"] = sum(used), sum(total)
            self._values = values
            self._answered.set()
        driver.close()

    def close(self) -> None:
        self._closed = True

    def wait_until_ready(self, seconds: float) -> None:
        """Wait for the first answer of the driver, which may take some seconds to start."""
        self.read()
        if self._present:
            self._answered.wait(seconds)
