"""drm_: GPU usage of the job's processes, as the kernel's graphics drivers count it for each process."""

from __future__ import annotations

import time
from collections.abc import Iterable

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Ending, Moment, Readings, Target
from jobmeter.errors import NoData
from jobmeter.kernel.drm import DrmClient, read_clients
from jobmeter.kernel.hardware import has_render_node
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.tree import Tree
from jobmeter.model import Across, Kind, Measurement, Quality

BUSY = Measurement(
    "drm_busy_seconds", "seconds", Kind.COUNTER, Across.LAST, Quality.AT_LEAST,
    "GPU time: that of the busiest kind of engine of each client, as last read, summed.",
)  # fmt: skip
MEMORY = Measurement(
    "drm_memory", "bytes", Kind.GAUGE, Across.LAST, Quality.SAMPLED,
    "GPU memory of the job's processes; of a GPU without memory of its own, what they have in that of the machine.",
)  # fmt: skip
GPUS = Measurement(
    "drm_gpus", "count", Kind.GAUGE, Across.LAST, Quality.SAMPLED, "GPUs that processes of the job had open and used."
)


class DrmCollector:
    name = "drm"
    measurements = (BUSY, MEMORY, GPUS)
    default = frozenset(m.key for m in measurements)

    def check(self, machine: Machine) -> None:
        if not has_render_node(machine):
            raise NoData("no GPU with a kernel graphics driver (i915, xe, amdgpu) on this machine")

    def open(self, target: Target, wanted: frozenset[str]) -> DrmSource:
        self.check(target.machine)
        return DrmSource(target)


class DrmSource:
    """Searches the open files of the job's processes; an allowance limits the cost."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._machine = target.machine
        self._tree = Tree(self._machine, target.root, None if target.root_is_job else target.main)
        self._allowance = Allowance(share=0.01, at_first=0.01)
        self._clients: dict[tuple[str, int], _Client] = {}
        self._is_used = False
        if target.root_is_job:
            self._update_clients()
            for client in self._clients.values():
                client.begin()

    def read(self, moment: Moment) -> Readings:
        if moment.quiet or not self._allowance.covers():
            return self._counters()
        with self._allowance:
            present = self._update_clients()
        if not self._is_used:
            return {}
        device = sum(client.device_memory for client in present)
        memory = device or sum(client.system_memory for client in present)
        used = [client for client in present if client.device_memory or self._clients[client.key].seconds > 0]
        return {MEMORY.key: memory, GPUS.key: len({client.key[0] for client in used}), **self._counters()}

    def _update_clients(self) -> list[DrmClient]:
        """The clients that are open now, each once. Adds what they used since the last call."""
        self._tree.refresh()
        present: dict[tuple[str, int], DrmClient] = {}
        for pid in self._tree.running_pids(with_root=self._target.root_is_job):
            try:
                present |= {client.key: client for client in read_clients(self._machine, pid)}
            except OSError:
                continue  # it has ended, or is another user's
        now = time.monotonic()
        for key, client in present.items():
            self._clients.setdefault(key, _Client()).update(client, now)
        self._is_used = self._is_used or bool(present)
        return list(present.values())

    def _counters(self) -> Readings:
        return {BUSY.key: round(_total(self._clients.values()), 6)} if self._is_used else {}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self._counters()

    def close(self) -> None:
        self._tree.close()


class _Client:
    """The engine time of one client, for drivers that count nanoseconds and for those that count cycles."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before = 0.0  # what it had used before the measurement
        self._by_cycles: dict[str, float] = {}
        self._cycles: dict[str, tuple[int, int]] = {}
        self._read_at = 0.0

    def update(self, client: DrmClient, now: float) -> None:
        elapsed, self._read_at = now - self._read_at, now
        for engine, (own, total) in client.engine_cycles.items():
            before = self._cycles.get(engine)
            if before is not None and total > before[1]:
                share = (own - before[0]) / (total - before[1])
                self._by_cycles[engine] = self._by_cycles.get(engine, 0.0) + max(share, 0.0) * elapsed
        self._cycles = client.engine_cycles
        busiest = max([*client.engine_seconds.values(), *self._by_cycles.values()], default=0.0)
        self.seconds = max(self.seconds, busiest - self._before)

    def begin(self) -> None:
        """Count from now on."""
        self._before, self.seconds = self.seconds, 0.0


def _total(clients: Iterable[_Client]) -> float:
    return sum(client.seconds for client in clients)
