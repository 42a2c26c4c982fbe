"""NVIDIA GPUs, through the driver's own library (NVML) and its Python client, `nvidia-ml-py`.

Every call can block for as long as the driver does, so the caller should use a separate thread. A value that the driver
or the GPU does not support is None. A value that is refused for another reason is None too, and noted in `faults` once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobmeter.errors import NoData
from jobmeter.kernel.gpu import Gpu, GpuLost, GpuReading

_THROTTLED = {0x04: "power cap", 0x08: "hardware", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Bits of the clock event reasons that slow a GPU down; other bits mean that it idles, or a setting of its owner."""


class Driver:
    """An open NVML library."""

    def __init__(self) -> None:
        """Raises NoData if the client, the library or the driver is missing, or this user may not use it."""
        try:
            import pynvml
        except ImportError:
            raise NoData("needs the package `nvidia-ml-py`: pip install nvidia-ml-py") from None
        self._nvml: Any = pynvml
        self.faults: dict[str, str] = {}
        self._seen: dict[str, int] = {}  # GPU UUID → time of its last process sample, on the driver's clock
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise NoData(f"NVIDIA driver: {_words(error)}") from None

    def gpus(self) -> list[Gpu]:
        """The GPUs; in place of a divided GPU (MIG), its instances. Raises NoData if the driver does not list them."""
        nvml = self._nvml
        try:
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            raise NoData(f"NVIDIA driver: {_words(error)}") from None
        gpus: list[Gpu] = []
        for index in range(count):
            try:
                gpus += self._parts(index, nvml.nvmlDeviceGetHandleByIndex(index))
            except (nvml.NVMLError, GpuLost) as error:
                self.faults.setdefault(f"GPU {index}", _words(error))
        return gpus

    def _parts(self, index: int, handle: Any) -> list[Gpu]:
        nvml, label = self._nvml, f"GPU {index}"
        mode = self._ask(label, "MIG mode", nvml.nvmlDeviceGetMigMode, handle)
        if not mode or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return [self._described(index, None, handle, handle)]
        most = self._ask(label, "MIG instances", nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
        parts = []
        for number in range(most):
            try:
                part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            except nvml.NVMLError:
                continue  # there is no instance with this number
            parts.append(self._described(index, number, part, handle))
        return parts

    def _described(self, index: int, instance: int | None, handle: Any, whole: Any) -> Gpu:
        nvml, label = self._nvml, f"GPU {index}"
        uuid = self._ask(label, "UUID", nvml.nvmlDeviceGetUUID, handle)
        name = self._ask(label, "name", nvml.nvmlDeviceGetName, handle)
        return Gpu(index, _text(uuid) or label, _text(name), instance, handle, whole)

    def read(self, gpu: Gpu) -> GpuReading:
        """What the GPU reports now. Raises GpuLost if it does not answer any more."""
        nvml = self._nvml

        def ask(what: str, function: str, *arguments: Any) -> Any:
            return self._ask(gpu.label, what, getattr(nvml, function), *arguments)

        utilisation = ask("utilisation", "nvmlDeviceGetUtilizationRates", gpu.handle)
        memory = ask("memory", "nvmlDeviceGetMemoryInfo", gpu.handle)
        milliwatts = ask("power", "nvmlDeviceGetPowerUsage", gpu.whole)
        millijoules = ask("energy", "nvmlDeviceGetTotalEnergyConsumption", gpu.whole)
        return GpuReading(
            None if utilisation is None else float(utilisation.gpu),
            None if memory is None else int(memory.used),
            None if memory is None else int(memory.total),
            None if milliwatts is None else milliwatts / 1000,
            None if millijoules is None else millijoules / 1000,
            ask("temperature", "nvmlDeviceGetTemperature", gpu.whole, nvml.NVML_TEMPERATURE_GPU),
            self._throttled(gpu),
            self._processes(gpu),
            self._process_percent(gpu),
        )

    def _throttled(self, gpu: Gpu) -> tuple[str, ...] | None:
        nvml = self._nvml
        # Renamed in 2023; older drivers and clients have only the old name.
        bits = None
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            if bits is None and hasattr(nvml, name):
                bits = self._ask(gpu.label, "clocks", getattr(nvml, name), gpu.whole)
        if bits is None:
            return None
        return tuple(dict.fromkeys(words for bit, words in _THROTTLED.items() if bits & bit))

    def _processes(self, gpu: Gpu) -> dict[int, int | None] | None:
        """The processes that compute or draw on the GPU; None if the driver does not list them."""
        memory_by_pid: dict[int, int | None] = {}
        listed = False
        for kind in ("Compute", "Graphics"):
            entries = self._newest(gpu, f"nvmlDeviceGet{kind}RunningProcesses")
            if entries is None:
                continue
            listed = True
            for entry in entries:
                # A process that does both is in both lists, with the same memory.
                memory_by_pid[int(entry.pid)] = _larger(memory_by_pid.get(int(entry.pid)), entry.usedGpuMemory)
        return memory_by_pid if listed else None

    def _newest(self, gpu: Gpu, name: str) -> list[Any] | None:
        """The result of the newest version of a function that the driver has; None if it has none."""
        # The function without a version fails if the client is newer than the driver.
        for version in ("_v3", "_v2"):
            function = getattr(self._nvml, name + version, None)
            entries = None if function is None else self._ask(gpu.label, "processes", function, gpu.handle)
            if entries is not None:
                return list(entries)
        return None

    def _process_percent(self, gpu: Gpu) -> dict[int, float] | None:
        """The mean, by pid, of the samples of GPU use since the last call; None if the driver does not sample."""
        nvml, since = self._nvml, self._seen.get(gpu.uuid, 0)
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(gpu.handle, since)
        except nvml.NVMLError as error:
            return {} if error.value == nvml.NVML_ERROR_NOT_FOUND else None
        if samples:
            self._seen[gpu.uuid] = max(int(sample.timeStamp) for sample in samples)
        collected: dict[int, list[int]] = {}
        for sample in samples:
            collected.setdefault(int(sample.pid), []).append(int(sample.smUtil))
        return {pid: sum(values) / len(values) for pid, values in collected.items()}

    def _ask(self, label: str, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of one call; None if it fails, which is a fault unless the driver or GPU does not support it.

        Raises GpuLost if the GPU does not answer any more.
        """
        nvml = self._nvml
        try:
            return function(*arguments)
        except nvml.NVMLError as error:
            if error.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
                raise GpuLost(f"{label}: {_words(error)}") from None
            if error.value not in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
                self.faults.setdefault(f"{label}, {what}", _words(error))
            return None

    def close(self) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            pass  # there is nothing left to close


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
