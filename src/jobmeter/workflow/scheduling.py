"""Selects the job that starts next: the unblocked job with the highest priority. Starts nothing itself.

If that job does not fit, room is reserved for it: others may overtake it only if they do not delay it (backfilling).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from jobmeter.engines.contract import Capacity
from jobmeter.model import Requirement
from jobmeter.workflow.graph import dependants
from jobmeter.workflow.plan import Job
from jobmeter.workflow.reservation import Amounts, Occupied, free_amounts, reserve


class Blocked(NamedTuple):
    """A job that will not run, and the failed job that it needs."""

    number: int
    by: int


class _Shape(NamedTuple):
    """What jobs of the same shape request: of these, only the first in line has to be considered."""

    amounts: Amounts
    runtime: float | None


class Scheduler:
    """Keeps track of the jobs that are ready, the jobs that run, and what is free."""

    def __init__(self, jobs: Sequence[Job], capacity: Capacity, done: Collection[int] = ()) -> None:
        """`done` are the numbers of jobs that need not run."""
        self._jobs = {job.number: job for job in jobs}
        self._dependants = dependants(jobs)
        self._requirements: dict[int, Requirement] = {}  # of the next attempt, if not that of the job
        self._free = free_amounts(capacity)
        # A job that requests no CPUs is assumed to use one, or all there is if that is less.
        self._usual_cpus = min(1.0, self._free.cpus)
        self._occupied: dict[int, Occupied] = {}
        self._done = set(done)
        self._settled = set(done)  # done, cancelled, failed or blocked
        self._stopped = False
        # Grouped by shape, so that not every job has to be checked to find one that fits.
        self._ready: dict[_Shape, list[tuple[int, tuple[float, ...], int]]] = {}
        self._needs = {
            job.number: sum(number not in self._done for number in job.blocked_by)
            for job in jobs
            if job.number not in self._done
        }
        for number, needs in self._needs.items():
            if needs == 0:
                self._make_ready(number)

    @property
    def running(self) -> int:
        return len(self._occupied)

    @property
    def waiting(self) -> int:
        """How many jobs neither run nor are settled."""
        return len(self._jobs) - len(self._settled) - len(self._occupied)

    def is_settled(self, number: int) -> bool:
        """Whether a job is done, cancelled, failed or blocked, so that it will not start again."""
        return number in self._settled

    def requirement(self, number: int) -> Requirement:
        """What the next attempt of a job requests."""
        return self._requirements.get(number, self._jobs[number].requirement)

    def amounts(self, number: int) -> Amounts:
        """What the next attempt of a job occupies."""
        requirement = self.requirement(number)
        cpus = self._usual_cpus if requirement.cpus is None else requirement.cpus
        return Amounts(cpus, requirement.memory_bytes or 0, self._jobs[number].gpus)

    def startable(self, now: float) -> Iterator[Job]:
        """Yield the jobs to start at `now`, a time of any clock; each counts as running from then on."""
        while not self._stopped and (shape := self._next_shape(now)) is not None:
            *_, number = heapq.heappop(self._ready[shape])
            if not self._ready[shape]:
                del self._ready[shape]
            self._occupy(number, shape, now)
            yield self._jobs[number]

    def adopt(self, number: int, requirement: Requirement, now: float) -> None:
        """Count a ready job as running, whether it fits or not: its task already runs."""
        self._unready(number)
        self._requirements[number] = requirement
        self._occupy(number, self._shape(number), now)

    def retry(self, number: int, requirement: Requirement) -> None:
        """Make a job ready again after an attempt has ended; the next attempt has this requirement."""
        self._release(number)
        self._requirements[number] = requirement
        self._make_ready(number)

    def completed(self, number: int) -> None:
        self._release(number)
        self._done.add(number)
        self._settled.add(number)
        for dependant in self._dependants.get(number, ()):
            self._count_down_needs(dependant)

    def cancelled(self, number: int) -> None:
        """Settle a job that was ended but has not failed: jobs that need it wait, and are not blocked."""
        self._release(number)
        self._settled.add(number)

    def failed(self, number: int) -> list[Blocked]:
        """Give up a job, whether it runs or waits, and all jobs that need it; return the latter."""
        if number in self._occupied:
            self._release(number)
        elif self._needs[number] == 0:
            self._unready(number)
        self._settled.add(number)
        blocked = []
        ended = [number]
        while ended:
            at = ended.pop()
            for dependant in self._dependants.get(at, ()):
                if dependant in self._settled:
                    continue
                if self._jobs[dependant].runs_after_failure or self._jobs[at].is_action:
                    self._count_down_needs(dependant)
                else:
                    self._settled.add(dependant)
                    blocked.append(Blocked(dependant, number))
                    ended.append(dependant)
        return blocked

    def _count_down_needs(self, dependant: int) -> None:
        """Count down the jobs that `dependant` waits for: one of them has ended."""
        if dependant in self._needs:
            self._needs[dependant] -= 1
            if self._needs[dependant] == 0 and dependant not in self._settled:
                self._make_ready(dependant)

    def stop(self) -> None:
        """Start no more jobs, not even those that become ready later."""
        self._stopped = True

    def _next_shape(self, now: float) -> _Shape | None:
        """The shape of the job that starts next: the first in line, else one that does not delay it, or None."""
        if not self._ready:
            return None
        in_line = {shape: heap[0] for shape, heap in self._ready.items()}
        first = min(in_line, key=in_line.__getitem__)
        if self._free.cover(first.amounts):
            return first
        fitting = [shape for shape in in_line if self._free.cover(shape.amounts)]
        if not fitting:
            return None
        reservation = reserve(first.amounts, self._free, self._occupied.values(), now)
        admitted = [shape for shape in fitting if reservation.admits(shape.amounts, shape.runtime, now)]
        return min(admitted, key=in_line.__getitem__, default=None)

    def _make_ready(self, number: int) -> None:
        heapq.heappush(self._ready.setdefault(self._shape(number), []), self._sort_key(number))

    def _unready(self, number: int) -> None:
        shape = self._shape(number)
        ready = self._ready[shape]
        ready.remove(self._sort_key(number))
        heapq.heapify(ready)
        if not ready:
            del self._ready[shape]

    def _sort_key(self, number: int) -> tuple[int, tuple[float, ...], int]:
        """The sort key of a job in the line: the smallest is first."""
        job = self._jobs[number]
        return -job.priority, job.rank, number

    def _shape(self, number: int) -> _Shape:
        return _Shape(self.amounts(number), self.requirement(number).runtime_seconds)

    def _occupy(self, number: int, shape: _Shape, now: float) -> None:
        until = None if shape.runtime is None else now + shape.runtime
        self._occupied[number] = Occupied(shape.amounts, until)
        self._free = self._free.minus(shape.amounts)

    def _release(self, number: int) -> None:
        self._free = self._free.plus(self._occupied.pop(number).amounts)
