"""CPU as a rate: percent of one core, from a counter of seconds."""

from __future__ import annotations

import os

SHORTEST_SPAN = 1.0
"""Seconds. A CPU limit grants a job its share every 100 ms, and counters lag behind by a tick of 10 ms: over a shorter
span, rates would be wrong."""
_EARLY = 0.05
"""Seconds by which a sample may come early: with an interval of `SHORTEST_SPAN`, each sample should have its rate."""
_TICKS_OF_A_RATE = 4
"""A coarse counter may be one tick off at either end: over this many ticks a rate is right to within a quarter."""


class CpuPercent:
    """The rate of a CPU counter since an earlier reading, `SHORTEST_SPAN` ago or more.

    A job shorter than that has no rate, only a mean.

    Clock and counter are read one after the other, and the reader may have to wait for a CPU in between. So the clock
    is read before and after the counter, and a span lasts from before its first reading to after its last: a
    rate may be slightly too low, and is never too high. One busy thread reads as 100 %, never as 103.
    """

    def __init__(self, before: float, seconds: float = 0.0, *, tick: float = 0.0) -> None:
        """Begin at `seconds`, the counter's value as read at `before` or later; it moves in steps of `tick`."""
        self._since = before
        self._seconds = seconds
        self._coarse = _TICKS_OF_A_RATE * tick
        self._most = 100.0 * (os.cpu_count() or 1)

    def update(self, before: float, seconds: float, after: float) -> float | None:
        """The rate until now, or None if it is too early for one; the counter was read between `before` and `after`."""
        span = after - self._since
        if span < max(SHORTEST_SPAN - _EARLY, self._coarse):
            return None
        rate = 100.0 * max(seconds - self._seconds, 0.0) / span
        self._since, self._seconds = before, seconds
        # Counters lag behind by up to a tick per CPU, so a rate can seem to be more than all CPUs.
        return round(min(rate, self._most), 2)
