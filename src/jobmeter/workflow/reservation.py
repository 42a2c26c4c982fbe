"""Reserves room for the job that is first in line and does not fit yet. Pure: amounts and times in and out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobmeter.engines.contract import Capacity

_HAIR = 1e-9
"""The tolerance for rounding errors: ten jobs of 0.1 CPUs fit one CPU."""


class Amounts(NamedTuple):
    """What a job occupies, or what is free; infinity where there is no limit."""

    cpus: float
    memory_bytes: float
    gpus: float
    slots: float = 1

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(*(mine + theirs for mine, theirs in zip(self, other)))

    def minus(self, other: Amounts) -> Amounts:
        return Amounts(*(mine - theirs for mine, theirs in zip(self, other)))

    def cover(self, needed: Amounts) -> bool:
        """Whether a job that needs these amounts fits."""
        return (
            needed.cpus <= self.cpus + _HAIR
            and needed.memory_bytes <= self.memory_bytes
            and needed.gpus <= self.gpus
            and needed.slots <= self.slots
        )


def free_amounts(capacity: Capacity) -> Amounts:
    """What is free while nothing runs."""
    bounds = (capacity.cpus, capacity.memory_bytes, capacity.gpus, capacity.slots)
    return Amounts(*(float("inf") if bound is None else bound for bound in bounds))


class Occupied(NamedTuple):
    """What a running job occupies, and until when, by the runtime it requests; None if it requests none."""

    amounts: Amounts
    until: float | None


class Reservation(NamedTuple):
    """What is held back for a job that does not fit yet."""

    begins: float | None  # when it fits, if running jobs take the runtime they request; None: not known
    spare: Amounts  # what other jobs may occupy at that time, or any time, without delaying it

    def admits(self, needed: Amounts, runtime: float | None, now: float) -> bool:
        """Whether another job can start now without delaying the one that waits."""
        ends_before = self.begins is not None and runtime is not None and now + runtime <= self.begins
        return ends_before or self.spare.cover(needed)


def reserve(needed: Amounts, free: Amounts, running: Iterable[Occupied], now: float) -> Reservation:
    """The reservation for a job that is next in line, and whose needs do not fit now.

    A job that has run longer than it requested is assumed to end now. If the requested runtimes do not show when there
    will be room, all that the job needs is held back, as far as it is free.
    """
    ends = sorted((max(each.until, now), each.amounts) for each in running if each.until is not None)
    begins: float | None = None
    then = free
    for end, amounts in ends:
        if begins is not None and end > begins:
            break
        then = then.plus(amounts)
        if begins is None and then.cover(needed):
            begins = end
    if begins is not None:
        return Reservation(begins, then.minus(needed))
    return Reservation(None, Amounts(*(max(left, 0) for left in free.minus(needed))))
