"""Simulates a workflow on a cluster, with the scheduler that runs real ones. Pure: nothing is started."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobmeter.engines.contract import Capacity
from jobmeter.model import Requirement
from jobmeter.workflow.expected_usage import Use
from jobmeter.workflow.plan import Job
from jobmeter.workflow.reservation import Amounts, free_amounts
from jobmeter.workflow.scheduling import Scheduler

_GIB = 1 << 30


class Cluster(NamedTuple):
    """A number of equal nodes. Each job runs on one of them."""

    nodes: int
    node: Capacity

    def capacity(self) -> Capacity:
        """What all nodes have together; one job may request no more than one node has."""
        node, count = self.node, self.nodes
        return Capacity(
            None if node.cpus is None else node.cpus * count,
            None if node.memory_bytes is None else node.memory_bytes * count,
            None if node.gpus is None else node.gpus * count,
            None if node.slots is None else node.slots * count,
            Requirement(node.cpus, node.memory_bytes, None, node.gpus),
        )


class Level(NamedTuple):
    """What is occupied from this moment on."""

    seconds: float  # since the start
    jobs: int
    cpus: float
    memory_bytes: float  # the sum of the peaks of the running jobs; their requests, where unknown


class Simulated(NamedTuple):
    """The result of one simulation."""

    seconds: float
    core_hours: float  # reserved
    gb_hours: float
    used_core_hours: float | None  # None if not known for some job
    used_gb_hours: float | None
    levels: list[Level]
    attempts: int

    @property
    def memory_peak_bytes(self) -> float:
        return max((level.memory_bytes for level in self.levels), default=0.0)

    @property
    def jobs_peak(self) -> int:
        return max((level.jobs for level in self.levels), default=0)


class _Running(NamedTuple):
    number: int
    use: Use
    node: int
    amounts: Amounts
    memory_bytes: float


def simulate(jobs: Sequence[Job], cluster: Cluster, draws: Mapping[int, Sequence[Use]]) -> Simulated:
    """Simulate the jobs as the runner would run them; `draws` has the attempts at each job."""
    return _Simulation(jobs, cluster, draws).run()


class _Simulation:
    def __init__(self, jobs: Sequence[Job], cluster: Cluster, draws: Mapping[int, Sequence[Use]]) -> None:
        self._draws = draws
        self._scheduler = Scheduler(jobs, cluster.capacity())
        self._free = [free_amounts(cluster.node)] * cluster.nodes
        self._tried: dict[int, int] = {}
        self._waiting: list[int] = []  # started by the scheduler, but no node has room yet
        self._ends: list[tuple[float, int, _Running]] = []
        self._levels: list[Level] = []
        self._running = 0
        self._cpus = self._memory = 0.0
        self._reserved = self._reserved_memory = 0.0
        self._used: float | None = 0.0
        self._used_memory: float | None = 0.0

    def run(self) -> Simulated:
        now = 0.0
        while True:
            self._waiting += [job.number for job in self._scheduler.startable(now)]
            self._waiting = [number for number in self._waiting if not self._start(number, now)]
            self._note_level(now)
            if not self._ends:
                break
            now = self._ends[0][0]
            while self._ends and self._ends[0][0] <= now:
                self._end(heapq.heappop(self._ends)[2])
        attempts = sum(self._tried.values())
        return Simulated(
            now, self._reserved, self._reserved_memory, self._used, self._used_memory, self._levels, attempts
        )

    def _start(self, number: int, now: float) -> bool:
        """Start a job on the first node that has room for it. False if none has."""
        amounts = self._scheduler.amounts(number)
        node = next((node for node, free in enumerate(self._free) if free.cover(amounts)), None)
        if node is None:
            return False
        tried = self._tried[number] = self._tried.get(number, 0) + 1
        use = self._draws[number][tried - 1]
        memory = amounts.memory_bytes if use.memory_peak_bytes is None else use.memory_peak_bytes
        running = _Running(number, use, node, amounts, memory)
        heapq.heappush(self._ends, (now + use.seconds, number, running))
        self._free[node] = self._free[node].minus(amounts)
        self._running += 1
        self._cpus += amounts.cpus
        self._memory += memory
        self._count(running)
        return True

    def _count(self, running: _Running) -> None:
        use, hours = running.use, running.use.seconds / 3600
        self._reserved += running.amounts.cpus * hours
        self._reserved_memory += running.amounts.memory_bytes / _GIB * hours
        mean = use.memory_mean_bytes if use.memory_mean_bytes is not None else use.memory_peak_bytes
        if self._used is not None:
            self._used = None if use.cpu_seconds is None else self._used + use.cpu_seconds / 3600
        if self._used_memory is not None:
            self._used_memory = None if mean is None else self._used_memory + mean / _GIB * hours

    def _end(self, running: _Running) -> None:
        self._free[running.node] = self._free[running.node].plus(running.amounts)
        self._running -= 1
        self._cpus -= running.amounts.cpus
        self._memory -= running.memory_bytes
        number = running.number
        if self._tried[number] < len(self._draws[number]):
            self._scheduler.retry(number, self._scheduler.requirement(number))
        else:
            self._scheduler.completed(number)

    def _note_level(self, now: float) -> None:
        level = Level(now, self._running, self._cpus, self._memory)
        if self._levels and self._levels[-1].seconds == now:
            self._levels[-1] = level
        else:
            self._levels.append(level)
