"""CPU as a rate: percent of one core, from a counter of seconds."""

from __future__ import annotations

import os

SHORTEST_SPAN = 0.25
"""Seconds. Clock ticks of 10 ms over less than this would show rates that never were."""


class CpuPercent:
    """The rate of a CPU counter since an earlier look at least `SHORTEST_SPAN` ago."""

    def __init__(self, monotonic: float, seconds: float = 0.0) -> None:
        """Begin at `seconds`, the counter's value at `monotonic`."""
        self._since = monotonic
        self._seconds = seconds
        self._most = 100.0 * (os.cpu_count() or 1)
        self._given = False

    def update(self, monotonic: float, seconds: float, *, last: bool = False) -> float | None:
        """The rate by now, or None when it is too early to tell.

        A job shorter than the span gets its rate over all its life, when it ends.
        """
        span = monotonic - self._since
        if span < SHORTEST_SPAN and not (last and not self._given and span > 0):
            return None
        rate = 100.0 * max(seconds - self._seconds, 0.0) / span
        self._since, self._seconds, self._given = monotonic, seconds, True
        # The clock and the counter are read one after the other: more than all CPUs is that gap.
        return round(min(rate, self._most), 2)
