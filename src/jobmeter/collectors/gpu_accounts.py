"""The GPU usage of a job, for all GPUs of one driver: summed from readings, by device, with the job's share of each.

A GPU belongs to the job if the environment of its command names it, or once a process of the job is on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.collectors.contract import Readings
from jobmeter.collectors.gpu_peak import GpuPeak
from jobmeter.collectors.job_processes import JobProcesses
from jobmeter.kernel.gpu import Gpu, GpuReading, visible
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

if TYPE_CHECKING:
    from jobmeter.record.types import DeviceEntry, PeakEntry


class GpuKeys(NamedTuple):
    """The measurements of GPUs, which every driver's collector has under its own prefix."""

    gpus: Measurement
    busy: Measurement
    percent: Measurement
    memory: Measurement
    memory_percent: Measurement
    power: Measurement
    energy: Measurement
    temperature: Measurement
    throttled: Measurement
    clocks: Measurement


def describe_gpus(prefix: str) -> GpuKeys:
    def gauge(key: str, unit: str, across: Across, help: str, gauge: Gauge = Gauge.LEVEL) -> Measurement:
        return Measurement(f"{prefix}_{key}", unit, Kind.GAUGE, across, Quality.SAMPLED, help, gauge)

    def counter(key: str, unit: str, help: str) -> Measurement:
        return Measurement(f"{prefix}_{key}", unit, Kind.COUNTER, Across.LAST, Quality.SAMPLED, help)

    return GpuKeys(
        gauge("gpus", "count", Across.LAST, "GPUs with a process of the job; an instance of a divided GPU is one."),
        counter("busy_seconds", "seconds", "GPU time: how long kernels of the job ran, summed over its GPUs."),
        gauge("percent", "percent", Across.SUM, "GPU in use by the job; 100 is one GPU.", Gauge.RATE),
        gauge("memory", "bytes", Across.SUM, "GPU memory of the job's processes."),
        gauge("memory_percent", "percent", Across.MAX, "Memory in use of the fullest GPU of the job, of all it has."),
        gauge("power", "watts", Across.SUM, "Power of the job's GPUs, of all that runs on them."),
        counter("energy", "joules", "Energy of the job's GPUs, by their own counter or else from their power."),
        gauge("temperature", "celsius", Across.MAX, "Temperature of the job's hottest GPU."),
        counter("throttled_seconds", "seconds", "Time in which a GPU of the job was slowed down by its driver."),
        Measurement(
            f"{prefix}_clocks", "text", Kind.CATEGORY, Across.TALLY, Quality.SAMPLED,
            "What slowed the clocks of the job's GPUs down: heat, power cap, power brake, hardware; free if nothing.",
        ),
    )  # fmt: skip


class _Device:
    """One GPU over the run."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.is_used = False  # a process of the job was on it
        self.busy_seconds: float | None = None
        self.energy: float | None = None
        self.throttled_seconds: float | None = None
        self.throttled_by: dict[str, None] = {}
        self.memory_total: int | None = None
        self.memory_peak: int | None = None
        self.hottest: float | None = None
        self.process_peaks: dict[int, int] = {}
        self.held: dict[int, int] = {}  # pid → bytes held now
        self.is_shared = self.memory_is_shared = False
        self._energy_before: float | None = None
        self._last_use: tuple[float, float | None] | None = None  # share and percent, if a process of the job was on it

    def update(self, reading: GpuReading, own: set[int] | None, seconds: float) -> Readings:
        """Add a reading, `seconds` after the one before; `own` are the job's pids on the GPU, None if not listed."""
        share = _own_share(reading, own)
        if share is None:
            share, self.is_shared = 1.0, True
        percent = _own_percent(reading, own, share)
        before, self._last_use = self._last_use, (share, percent) if own else None
        if own is not None and not own and before is not None:
            share, percent = before  # the job's processes ended since, and used it until then
        if percent is not None:
            self.busy_seconds = (self.busy_seconds or 0.0) + percent / 100 * seconds
        self._add_energy(reading, share, seconds)
        if reading.throttled_by is not None:
            self.throttled_seconds = (self.throttled_seconds or 0.0) + seconds * bool(reading.throttled_by)
            self.throttled_by.update(dict.fromkeys(reading.throttled_by))
        if reading.celsius is not None:
            self.hottest = max(reading.celsius, self.hottest or 0.0)
        self.memory_total = reading.memory_total or self.memory_total
        memory = self._memory(reading, own)
        if memory is not None:
            self.memory_peak = max(memory, self.memory_peak or 0)
        return {name: value for name, value in (("percent", percent), ("memory", memory)) if value is not None}

    def _memory(self, reading: GpuReading, own: set[int] | None) -> int | None:
        self.held = {}
        if own is not None and reading.processes is not None:
            listed = {pid: reading.processes.get(pid) for pid in own}
            amounts = {pid: amount for pid, amount in listed.items() if amount is not None}
            self.held = amounts
            for pid, amount in amounts.items():
                self.process_peaks[pid] = max(amount, self.process_peaks.get(pid, 0))
            if len(amounts) == len(listed):
                return sum(amounts.values())
        self.memory_is_shared = self.memory_is_shared or reading.memory_used is not None
        return reading.memory_used

    def _add_energy(self, reading: GpuReading, share: float, seconds: float) -> None:
        """Add energy from the counter of the device; if it has none, from its power."""
        before, self._energy_before = self._energy_before, reading.energy_joules
        if reading.energy_joules is not None:
            # A counter that falls was reset with the driver: that reading yields nothing.
            used = max(reading.energy_joules - before, 0.0) if before is not None else 0.0
        elif reading.power_watts is not None:
            used = reading.power_watts * seconds
        else:
            return
        self.energy = (self.energy or 0.0) + used * share


def _own_share(reading: GpuReading, own: set[int] | None) -> float | None:
    """The job's share of what the device does, 0 to 1; None if others may use it too and their share is unknown."""
    if reading.processes is None or own is None:
        return None
    if len(own) == len(reading.processes):
        return 1.0
    if not own:
        return 0.0
    if reading.process_percent is None:
        return None
    every = sum(reading.process_percent.values())
    return sum(reading.process_percent.get(pid, 0.0) for pid in own) / every if every else 0.0


def _own_percent(reading: GpuReading, own: set[int] | None, share: float) -> float | None:
    if reading.busy_percent is not None:
        return reading.busy_percent * share
    if own is None or reading.process_percent is None:
        return None
    return min(sum(reading.process_percent.get(pid, 0.0) for pid in own), 100.0)


class GpuAccounts:
    """The GPUs of one job. `variables` of its environment name GPUs; only the first that is set counts."""

    def __init__(
        self, keys: GpuKeys, gpus: Sequence[Gpu], processes: JobProcesses, variables: Sequence[str], source: str
    ) -> None:
        self._keys = keys
        self._gpus = gpus
        self._processes = processes
        self._variables = variables
        self._source = source
        self._devices = {gpu.uuid: _Device(gpu) for gpu in gpus}
        self._named: set[str] = set()  # UUIDs of the GPUs that the job's environment names
        self._read_at: float | None = None
        self._peak = GpuPeak(processes)

    def update(self, readings: Mapping[str, GpuReading], now: float) -> Readings:
        """What the job uses now, and its totals until now. `readings` are by UUID, without GPUs that were lost."""
        seconds = 0.0 if self._read_at is None else now - self._read_at
        self._read_at = now
        words = self._processes.variable(*self._variables)
        if words is not None:
            self._named |= {gpu.uuid for gpu in visible(words, self._gpus) or ()}
        columns: dict[str, list[float]] = {}
        clocks: list[str] = []
        powered: set[int] = set()  # GPUs whose power is counted: it is of the whole GPU, not of an instance
        used = 0
        for uuid, reading in readings.items():
            device = self._devices[uuid]
            own = None if reading.processes is None else self._processes.of(reading.processes)
            device.is_used = device.is_used or bool(own)
            used += bool(own)
            if not self._is_of_job(device):
                continue
            values: dict[str, object] = dict(device.update(reading, own, seconds))
            if device.gpu.number not in powered:
                powered.add(device.gpu.number)
                values |= {"power": reading.power_watts, "temperature": reading.celsius}
            if reading.memory_used is not None and reading.memory_total:
                values["memory_percent"] = round(100 * reading.memory_used / reading.memory_total, 2)
            for name, value in values.items():
                if isinstance(value, (int, float)):
                    columns.setdefault(getattr(self._keys, name).key, []).append(value)
            if reading.throttled_by is not None:
                clocks += reading.throttled_by or ("free",)
        self._peak.update(self._held(), now)
        if clocks:
            columns[self._keys.clocks.key] = clocks  # type: ignore[assignment]
        totals: Readings = {self._keys.gpus.key: used} if self._lists_processes(readings) else {}
        return totals | columns | self.counters()

    def _held(self) -> dict[int, int]:
        """The GPU memory, by pid, of each process of the job now, summed over GPUs."""
        held: dict[int, int] = {}
        for device in self._of_job():
            for pid, amount in device.held.items():
                held[pid] = held.get(pid, 0) + amount
        return held

    def _lists_processes(self, readings: Mapping[str, GpuReading]) -> bool:
        return any(reading.processes is not None for reading in readings.values())

    def _is_of_job(self, device: _Device) -> bool:
        return device.is_used or device.gpu.uuid in self._named

    def _of_job(self) -> list[_Device]:
        return [device for device in self._devices.values() if self._is_of_job(device)]

    def counters(self) -> Readings:
        """The totals until now."""
        mine = self._of_job()
        energy = {device.gpu.number: device.energy for device in mine if device.energy is not None}
        values = {
            self._keys.busy.key: [d.busy_seconds for d in mine if d.busy_seconds is not None],
            self._keys.energy.key: list(energy.values()),
            self._keys.throttled.key: [d.throttled_seconds for d in mine if d.throttled_seconds is not None],
        }
        return {key: round(sum(amounts), 6) for key, amounts in values.items() if amounts}

    def qualities(self) -> dict[str, Quality]:
        """`shared` for figures of GPUs that others used too, if their share is unknown."""
        mine, keys = self._of_job(), self._keys
        shared = {keys.busy, keys.percent, keys.energy} if any(device.is_shared for device in mine) else set()
        if any(device.gpu.instance is not None for device in mine):
            shared |= {keys.energy}  # the energy is of the whole GPU
        if any(device.memory_is_shared for device in mine):
            shared |= {keys.memory}
        return {measurement.key: Quality.SHARED for measurement in shared}

    def peaks(self, started: float) -> list[PeakEntry]:
        """The peak of GPU memory and the processes that held it, for the record."""
        return self._peak.entries(started)

    def devices(self) -> list[DeviceEntry]:
        """The job's GPUs, for the record."""
        return [self._entry(device) for device in self._of_job()]

    def _entry(self, device: _Device) -> DeviceEntry:
        gpu = device.gpu
        figures = {
            "instance": gpu.instance,
            "memory_bytes": device.memory_total,
            "memory_peak_bytes": device.memory_peak,
            "busy_seconds": _rounded(device.busy_seconds),
            "energy_joules": _rounded(device.energy),
            "temperature_peak_celsius": device.hottest,
            "throttled_seconds": _rounded(device.throttled_seconds),
            "throttled_by": list(device.throttled_by) or None,
            "processes": [
                {"pid": pid, "memory_peak_bytes": peak} for pid, peak in sorted(device.process_peaks.items())
            ] or None,
        }  # fmt: skip
        entry: DeviceEntry = {"kind": "gpu", "source": self._source, "index": gpu.number, "uuid": gpu.uuid}
        if gpu.name:
            entry["name"] = gpu.name
        entry.update({name: value for name, value in figures.items() if value is not None})  # type: ignore[typeddict-item]
        return entry


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
