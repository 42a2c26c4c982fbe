"""Chooses the worker for a job. Pure functions of what is known about the workers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.model import Requirement

AMOUNTS = ("cpus", "memory_bytes", "gpus")


class WorkerState(NamedTuple):
    """What a worker reports of itself in a beacon."""

    name: str
    host: str
    version: str
    protocol: int
    queues: tuple[str, ...]
    capacity: Mapping[str, float]  # cpus, memory_bytes, gpus
    free: Mapping[str, float]
    runtimes: tuple[str, ...]  # container runtimes that answer there
    tasks: Mapping[str, Sequence[Any]]  # id → how many reports it has sent, whether it has ended
    closing: bool  # it takes no more jobs

    def has_ended(self, task: str) -> bool:
        """Whether the task has ended, so that what the worker reports as free includes what the task had."""
        return task not in self.tasks or bool(self.tasks[task][1])

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> WorkerState:
        return cls(**{**fields, "queues": tuple(fields["queues"]), "runtimes": tuple(fields["runtimes"])})


class Need(NamedTuple):
    """What a job needs of its worker."""

    amounts: Mapping[str, float]
    runtime: str | None = None  # the container runtime that it names; `auto` is any


def need_of(requirement: Requirement, container: Mapping[str, Any] | None) -> Need:
    """What a job needs. A job that requests no CPUs counts as one CPU, so that a worker does not get endless jobs."""
    amounts = {name: value for name in AMOUNTS if (value := getattr(requirement, name)) is not None}
    return Need({"cpus": 1.0, **amounts}, None if container is None else str(container["engine"]))


def can_run(worker: WorkerState, need: Need, queue: str) -> bool:
    """Whether the worker could run the job if it did nothing else."""
    if worker.closing or queue not in worker.queues:
        return False
    if need.runtime is not None and not (
        worker.runtimes if need.runtime == "auto" else need.runtime in worker.runtimes
    ):
        return False
    return _fits(need.amounts, worker.capacity)


def choose(
    need: Need,
    workers: Iterable[WorkerState],
    free: Mapping[str, Mapping[str, float]],
    queue: str,
    held: Collection[str] = (),
) -> str | None:
    """The worker on which the job fits now and leaves the largest share of CPUs free; None if it fits on none.

    `free` is what each worker has left, by name; `held` are workers that are kept free for other jobs.
    """
    best: tuple[float, str] | None = None
    for worker in workers:
        room = free[worker.name]
        if worker.name in held or not can_run(worker, need, queue) or not _fits(need.amounts, room):
            continue
        left = (room.get("cpus", 0.0) - need.amounts["cpus"]) / max(worker.capacity.get("cpus", 1.0), 1e-9)
        if best is None or (left, worker.name) > best:
            best = (left, worker.name)
    return None if best is None else best[1]


def worker_to_wait_at(
    need: Need, workers: Iterable[WorkerState], free: Mapping[str, Mapping[str, float]], queue: str
) -> str | None:
    """The worker at which the job can wait, so that it begins as soon as there is room; None: it waits at the runner.

    It must be the only worker that can run the job: else another might have room first. The jobs that wait there may
    request as much as the worker has in total.
    """
    able = [worker for worker in workers if can_run(worker, need, queue)]
    if len(able) != 1:
        return None
    (worker,) = able
    room = {name: free[worker.name].get(name, 0) + amount for name, amount in worker.capacity.items()}
    return worker.name if _fits(need.amounts, room) else None


def worker_to_hold(
    need: Need, workers: Iterable[WorkerState], free: Mapping[str, Mapping[str, float]], queue: str
) -> str | None:
    """The worker to keep free for a job that fits on none now: the one that lacks the least. None: none can run it."""
    able = [worker for worker in workers if can_run(worker, need, queue)]
    if not able:
        return None
    return max(able, key=lambda worker: (_scarcest(need, free[worker.name]), worker.name)).name


def free_amounts(worker: WorkerState, given: Iterable[Need], freed: Iterable[Need]) -> dict[str, float]:
    """What is free on a worker: what it reported, less what it was `given` since then, plus what was `freed` since."""
    free = dict(worker.free)
    for sign, needs in ((-1, given), (1, freed)):
        for need in needs:
            for name, amount in need.amounts.items():
                free[name] = free.get(name, 0) + sign * amount
    return free


def _fits(amounts: Mapping[str, float], room: Mapping[str, float]) -> bool:
    return all(amount <= room.get(name, 0) + 1e-9 for name, amount in amounts.items())


def _scarcest(need: Need, free: Mapping[str, float]) -> float:
    """The smallest ratio of a free amount to the amount needed."""
    return min((free.get(name, 0) / amount for name, amount in need.amounts.items() if amount), default=1.0)
