"""CPU as a rate: percent of one core, from a counter of seconds."""

from __future__ import annotations

import os

SHORTEST_SPAN = 0.25
"""Seconds. Clock ticks of 10 ms over less than this would show rates that never were."""
_TICKS_OF_A_RATE = 4
"""A coarser counter may be one tick off at either end: over so many ticks a rate is right to within a quarter."""


class CpuPercent:
    """The rate of a CPU counter since an earlier look at least `SHORTEST_SPAN` ago.

    Clock and counter are read one after the other, and whoever reads may have to wait for a CPU in between. So each
    look has the time before the counter was read and the time after, and a span goes from before the first to after
    the last: a rate may be a hair too low, and is never too high. One busy thread reads as 100 %, never as 103.
    """

    def __init__(self, before: float, seconds: float = 0.0, *, tick: float = 0.0) -> None:
        """Begin at `seconds`, the counter's value when it was read at `before` or later; it moves by whole `tick`s."""
        self._since = before
        self._seconds = seconds
        self._coarse = _TICKS_OF_A_RATE * tick
        self._most = 100.0 * (os.cpu_count() or 1)
        self._given = False

    def update(self, before: float, seconds: float, after: float, *, last: bool = False) -> float | None:
        """The rate by now, or None when it is too early to tell; the counter was read between `before` and `after`.

        A job shorter than the span gets its rate over all its life, when it ends, if it used enough for its counter.
        """
        span = after - self._since
        grown = max(seconds - self._seconds, 0.0)
        whole_life = last and not self._given and span > 0 and grown >= self._coarse
        if span < max(SHORTEST_SPAN, self._coarse) and not whole_life:
            return None
        rate = 100.0 * grown / span
        self._since, self._seconds, self._given = before, seconds, True
        # Counters lag behind by up to a tick of each CPU: more than all CPUs is that.
        return round(min(rate, self._most), 2)
