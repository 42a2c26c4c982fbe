"""A limit on the CPU time spent on readings outside the schedule."""

from __future__ import annotations

import time


class Allowance:
    """A share of the elapsed time that may be spent on the CPU, with something to begin with."""

    def __init__(self, share: float, at_first: float) -> None:
        self._share = share
        self._left = self._most = at_first
        self._last = time.monotonic()
        self._began = 0.0
        self._usual = at_first

    def covers(self, expected: float = 0.0) -> bool:
        """Whether so many seconds may be spent now; with 0, whether the last expense has been made up for."""
        now = time.monotonic()
        # Not accumulated beyond one expense: a long quiet time does not allow a burst.
        self._left = min(self._left + (now - self._last) * self._share, max(self._most, expected))
        self._last = now
        return self._left >= expected

    def __enter__(self) -> None:
        self._began = time.thread_time()

    def __exit__(self, *_: object) -> None:
        # A hypervisor that takes the CPU away makes one reading in a thousand expensive; the others are not.
        spent = min(time.thread_time() - self._began, 4 * self._usual)
        self._usual = spent
        self._left -= spent
