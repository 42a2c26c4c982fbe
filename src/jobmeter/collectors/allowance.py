"""A limit on the CPU time spent on readings outside the schedule."""

from __future__ import annotations

import time
from collections.abc import Callable


class Allowance:
    """A budget of CPU time: a share of the elapsed time, and an amount to start with. A `with` block spends it."""

    def __init__(self, share: float, at_first: float, *, cpu_clock: Callable[[], float] = time.thread_time) -> None:
        self._share = share
        self._cpu_clock = cpu_clock
        self._left = self._most = at_first
        self._last = time.monotonic()
        self._began = 0.0
        self._usual = at_first

    def covers(self, expected: float = 0.0) -> bool:
        """Whether `expected` seconds may be spent now; with 0, whether earlier expenses are made up for."""
        now = time.monotonic()
        # The budget does not grow beyond one expense: a long quiet time does not allow a burst.
        self._left = min(self._left + (now - self._last) * self._share, max(self._most, expected))
        self._last = now
        return self._left >= expected

    def __enter__(self) -> None:
        self._began = self._cpu_clock()

    def __exit__(self, *_: object) -> None:
        # At most 4 times the last expense: a hypervisor that takes the CPU away makes one reading in a thousand seem
        # expensive.
        spent = min(self._cpu_clock() - self._began, 4 * self._usual)
        if spent > 0:  # else the clock is too coarse to show it
            self._usual = spent
        self._left -= spent
