"""CPU of processes that are only ever seen from outside, at moments.

The difference is taken per process, and summed after. What a process used stays
counted when it ends, as it was last seen.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import NamedTuple


class Sight(NamedTuple):
    """A process at one moment."""

    cpu_seconds: float | None  # its own, without its children; None when it cannot be told any more
    age: float | None  # seconds


class _Account:
    __slots__ = ("anchor", "base", "rate", "seconds", "since")

    def __init__(self, monotonic: float, seconds: float, base: float) -> None:
        self.base = base
        self.seconds = self.anchor = seconds
        self.since = monotonic
        self.rate: float | None = None

    def see(self, monotonic: float, seconds: float, shortest: float) -> None:
        # One that ended may be shown with less, or with none.
        self.seconds = max(self.seconds, seconds)
        span = monotonic - self.since
        if span >= shortest:
            self.rate = 100.0 * (self.seconds - self.anchor) / span
            self.since, self.anchor = monotonic, self.seconds


class Growth:
    """The CPU time of a job by now, which never falls, and the rate of what lives. Bounded by what lives."""

    def __init__(self, monotonic: float, begun: Mapping[Hashable, Sight], *, shortest: float, youngest: float) -> None:
        """Count from here; what those in `begun` used before is not the job's.

        A rate is over `shortest` seconds or more. One since birth, of a process that was never seen
        before, is of those at least `youngest` seconds old. Both are for the coarseness of the clocks.
        """
        self._shortest = shortest
        self._youngest = youngest
        self._most = 100.0 * (os.cpu_count() or 1)
        self._kept = 0.0
        self._looked = monotonic
        self._accounts = {
            who: _Account(monotonic, sight.cpu_seconds or 0.0, sight.cpu_seconds or 0.0) for who, sight in begun.items()
        }

    def update(self, monotonic: float, seen: Mapping[Hashable, Sight]) -> None:
        for who in self._accounts.keys() - seen.keys():
            account = self._accounts.pop(who)
            self._kept += account.seconds - account.base
        for who, sight in seen.items():
            known = self._accounts.get(who)
            if known is None:
                self._accounts[who] = self._first_seen(monotonic, sight)
            elif sight.cpu_seconds is not None:
                known.see(monotonic, sight.cpu_seconds, self._shortest)
        self._looked = monotonic

    def _first_seen(self, monotonic: float, sight: Sight) -> _Account:
        seconds = sight.cpu_seconds or 0.0
        account = _Account(monotonic, seconds, base=0.0)
        if sight.age is not None:
            # It was not there at the last look.
            age = min(sight.age, monotonic - self._looked)
            if age >= self._youngest:
                account.rate = 100.0 * seconds / age
        return account

    def seconds(self) -> float:
        """CPU time of all that were ever seen."""
        return round(self._kept + sum(account.seconds - account.base for account in self._accounts.values()), 6)

    def percent(self, living: list[Hashable]) -> float | None:
        """The rates of those in `living` together; None while there is none that can be told."""
        rates = [rate for who in living if (rate := self._accounts[who].rate) is not None]
        return round(min(sum(rates), self._most), 2) if rates else None
