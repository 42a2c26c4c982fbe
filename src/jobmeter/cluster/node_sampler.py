"""Samples one node: all of its machine, and the processes that descend from its root. Runs on that node."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from jobmeter.cluster.gpu_use import GpuUse
from jobmeter.cluster.machine_use import MachineUse, boot_id
from jobmeter.cluster.process_use import ProcessesBelow
from jobmeter.kernel.cgroup.limits import cpus_allowed, memory_allowed
from jobmeter.kernel.hostfs import read_memory_total
from jobmeter.kernel.machine import THIS_MACHINE, Machine

_DRIVER_STARTS = 5.0
"""Seconds that the GPU driver may take to start."""


class NodeFacts(NamedTuple):
    """What does not change about a node."""

    host_id: str  # the same for nodes on one machine
    host_name: str
    host_cpus: float
    host_memory_bytes: float | None
    cpus: float  # CPUs that the node may use
    memory_bytes: float | None

    @property
    def is_limited(self) -> bool:
        """Whether the node may use less than its machine has, as in a container."""
        less_memory = (self.memory_bytes or 0) < (self.host_memory_bytes or 0)
        return self.cpus < self.host_cpus or less_memory


class NodeReading(NamedTuple):
    """One sample of a node. The source, which knows all nodes, decides if `machine` or `processes` is its use."""

    machine: dict[str, float]
    processes: dict[str, float]
    branches: list[tuple[int, str, dict[str, float]]]  # pid, title, use of each child of the root with its descendants
    spilled_bytes: float | None
    cpu_seconds: float  # CPU time of the sampler's process since it began


class NodeSampler:
    """Reads one node at each `read`."""

    def __init__(
        self, root: int | None = None, spill_directories: tuple[str, ...] = (), machine: Machine = THIS_MACHINE
    ) -> None:
        """`root` is the process that all processes of the node descend from; None: only its machine is read."""
        self._machine = machine
        self._machine_use = MachineUse(machine)
        self._gpus = GpuUse(machine)
        self._below = None if root is None else ProcessesBelow(machine, root)
        self._spill_directories = spill_directories

    def wait_for_gpus(self) -> None:
        """Wait until the GPU driver has started, if there is one: else the first samples would have no GPUs."""
        self._gpus.wait_until_ready(_DRIVER_STARTS)

    def facts(self) -> NodeFacts:
        try:
            memory: float | None = read_memory_total(self._machine)
        except (OSError, ValueError):
            memory = None
        allowed = memory_allowed(self._machine)
        return NodeFacts(
            boot_id(self._machine),
            os.uname().nodename,
            float(os.cpu_count() or 1),
            memory,
            cpus_allowed(self._machine),
            None if allowed is None else float(allowed),
        )

    def read(self) -> NodeReading:
        machine = {**self._machine_use.read(), **self._gpus.read()}
        if self._below is None:
            return NodeReading(machine, {}, [], None, time.process_time())
        use = self._below.read()
        branches = [(branch.pid, branch.title, branch.values) for branch in use.branches]
        return NodeReading(machine, use.values, branches, self._spilled(), time.process_time())

    def _spilled(self) -> float | None:
        """Bytes of objects that were spilled to disk; None if the directories for them are not known."""
        sizes: list[int] | None = None
        for directory in self._spill_directories:
            try:
                with os.scandir(directory) as entries:
                    file_sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries if entry.is_file()]
            except OSError:
                continue  # nothing was spilled there yet
            sizes = [*(sizes or []), *file_sizes]
        return None if not self._spill_directories else float(sum(sizes or []))

    def close(self) -> None:
        self._gpus.close()
        if self._below is not None:
            self._below.close()
