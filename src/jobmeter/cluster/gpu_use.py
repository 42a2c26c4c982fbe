"""What the NVIDIA GPUs of a machine do. Their driver can block for good: it is called by a thread of its own."""

from __future__ import annotations

import threading
import time

from jobmeter.errors import NoData
from jobmeter.kernel.gpu import GpuLost
from jobmeter.kernel.hardware import has_nvidia_driver
from jobmeter.kernel.machine import Machine

_DEADLINE = 0.2
"""Seconds that a reading waits for the driver; one that is late once is not waited for until it answers."""


class GpuUse:
    """Reads the GPUs, again and again; nothing where there is no driver."""

    def __init__(self, machine: Machine) -> None:
        self._values: dict[str, float] = {}
        self._asked, self._answered = threading.Event(), threading.Event()
        self._answered_in_time = True
        self._closed = False
        self._present = has_nvidia_driver(machine)
        if self._present:
            threading.Thread(target=self._serve, name="jobmeter-gpus", daemon=True).start()

    def read(self) -> dict[str, float]:
        """`used_gpus`, how many there are, and their memory; nothing while the driver does not answer."""
        if not self._present:
            return {}
        self._answered.clear()
        self._asked.set()
        in_time = self._answered.wait(_DEADLINE if self._answered_in_time else 0.0)
        self._answered_in_time = in_time
        return dict(self._values) if in_time else {}

    def _serve(self) -> None:
        from jobmeter.kernel.nvml import Driver

        try:
            driver = Driver()
            gpus = driver.gpus()
        except NoData:
            self._present = False
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
        deadline = time.monotonic() + seconds
        while self._present and time.monotonic() < deadline and not self.read():
            self._answered_in_time = True
