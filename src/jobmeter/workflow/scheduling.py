"""Which job starts next: those that are unblocked, fit what is free, and matter most. Starts nothing itself."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from jobmeter.engines.contract import Capacity
from jobmeter.model import Requirement
from jobmeter.workflow.graph import dependants
from jobmeter.workflow.plan import Job

_HAIR = 1e-9
"""Ten jobs of 0.1 CPUs fit one, whatever binary fractions say."""


class Blocked(NamedTuple):
    """A job that will not run, and the one it needs that failed."""

    number: int
    by: int


_Shape = tuple[float, int, int]
"""CPUs, bytes and GPUs that a job takes."""
_UNBOUNDED = float("inf")


class Scheduler:
    """Keeps what is ready, what runs and what is free."""

    def __init__(self, jobs: Sequence[Job], capacity: Capacity, done: Collection[int] = ()) -> None:
        """`done` are the numbers of jobs that need not run."""
        self._jobs = {job.number: job for job in jobs}
        self._dependants = dependants(jobs)
        self._requirements: dict[int, Requirement] = {}  # of attempts that request other than the job
        self._cpus, self._memory, self._gpus, self._slots = (
            _UNBOUNDED if amount is None else amount
            for amount in (capacity.cpus, capacity.memory_bytes, capacity.gpus, capacity.slots)
        )
        # A job that requests nothing is taken to keep one CPU busy, or what there is if that is less.
        self._usual_cpus = min(1.0, self._cpus)
        self._held: dict[int, _Shape] = {}
        self._done = set(done)
        self._settled = set(done)  # done, cancelled, failed or blocked
        self._stopped = False
        # By what they take, so that finding one that fits does not mean to look at each.
        self._ready: dict[_Shape, list[tuple[int, int]]] = {}
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
        return len(self._held)

    @property
    def waiting(self) -> int:
        """How many have neither begun nor been given up."""
        return len(self._jobs) - len(self._settled) - len(self._held)

    def is_settled(self, number: int) -> bool:
        """Whether nothing more comes of a job: it is done, cancelled, failed or blocked."""
        return number in self._settled

    def requirement(self, number: int) -> Requirement:
        """What the next attempt of a job requests."""
        return self._requirements.get(number, self._jobs[number].requirement)

    def startable(self) -> Iterator[Job]:
        """Jobs to start now; they count as running from here on."""
        while not self._stopped and (shape := self._best()) is not None:
            _, number = heapq.heappop(self._ready[shape])
            if not self._ready[shape]:
                del self._ready[shape]
            self._hold(number, shape)
            yield self._jobs[number]

    def adopt(self, number: int, requirement: Requirement) -> None:
        """A job that is ready runs already, whether it fits or not."""
        shape = self._shape(number)
        ready = self._ready[shape]
        ready.remove((-self._jobs[number].priority, number))
        heapq.heapify(ready)
        if not ready:
            del self._ready[shape]
        self._requirements[number] = requirement
        self._hold(number, self._shape(number))

    def again(self, number: int, requirement: Requirement) -> None:
        """The attempt that ran is over; another waits, with a requirement of its own."""
        self._release(number)
        self._requirements[number] = requirement
        self._make_ready(number)

    def completed(self, number: int) -> None:
        self._release(number)
        self._done.add(number)
        self._settled.add(number)
        for dependant in self._dependants.get(number, ()):
            if dependant in self._needs:
                self._needs[dependant] -= 1
                if self._needs[dependant] == 0 and dependant not in self._settled:
                    self._make_ready(dependant)

    def cancelled(self, number: int) -> None:
        """It was ended and has not failed: what needs it only waits."""
        self._release(number)
        self._settled.add(number)

    def failed(self, number: int) -> list[Blocked]:
        """Give a job up, and all that needs it; these are returned."""
        self._release(number)
        self._settled.add(number)
        blocked = []
        doomed = [number]
        while doomed:
            for dependant in self._dependants.get(doomed.pop(), ()):
                if dependant not in self._settled:
                    self._settled.add(dependant)
                    blocked.append(Blocked(dependant, number))
                    doomed.append(dependant)
        return blocked

    def stop(self) -> None:
        """Start no more, also of what becomes ready from here on."""
        self._stopped = True

    def _best(self) -> _Shape | None:
        """The shape of the job that matters most of those that fit."""
        fitting = [(heap[0], shape) for shape, heap in self._ready.items() if self._fits(shape)]
        return min(fitting)[1] if fitting else None

    def _fits(self, shape: _Shape) -> bool:
        cpus, memory, gpus = shape
        return cpus <= self._cpus + _HAIR and memory <= self._memory and gpus <= self._gpus and self._slots >= 1

    def _make_ready(self, number: int) -> None:
        job = self._jobs[number]
        heapq.heappush(self._ready.setdefault(self._shape(number), []), (-job.priority, number))

    def _shape(self, number: int) -> _Shape:
        requirement = self.requirement(number)
        cpus = self._usual_cpus if requirement.cpus is None else requirement.cpus
        return cpus, requirement.memory_bytes or 0, self._jobs[number].gpus

    def _hold(self, number: int, shape: _Shape) -> None:
        self._held[number] = shape
        self._cpus -= shape[0]
        self._memory -= shape[1]
        self._gpus -= shape[2]
        self._slots -= 1

    def _release(self, number: int) -> None:
        cpus, memory, gpus = self._held.pop(number)
        self._cpus += cpus
        self._memory += memory
        self._gpus += gpus
        self._slots += 1
