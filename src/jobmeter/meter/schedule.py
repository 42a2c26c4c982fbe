"""When to sample a job (densely at its start, then at the interval, without drift) and when its windows end."""

from __future__ import annotations

FIRST = 0.01
"""Seconds from the start of a job to its first sample; the offset doubles from there up to the interval."""


FIRST_WINDOW = 1.0
"""The same for windows: the first figures of a job reach its journal early, in case jobmeter is killed."""
FIRST_FINE = 0.015
FINE_SHARE = 0.02
"""A fine window lasts `FIRST_FINE` seconds, or `FINE_SHARE` of the time so far if that is more: some 60 windows in
the first second, and 115 more each time that the age of the job grows tenfold."""
BUSY_SHARE = 0.25
"""The same for windows with all that samples read, while the job runs: they are larger, and have other columns."""
LONG_SHARE = 0.001
"""Windows of a very long job last this share of the time so far: its journal grows with the logarithm of its age."""


def next_offset(elapsed: float, interval: float, first: float = FIRST) -> float:
    """The offset from the job's start of the first sample that lies after `elapsed`.

    Regular samples are at multiples of the interval: one that comes late, or is
    missed, does not move those after it.
    """
    if elapsed < interval:
        offset = first
        while offset <= elapsed:
            offset *= 2
        return min(offset, interval)
    # In floating point, a multiple may come out a little too small.
    return (int(elapsed / interval + 1e-6) + 1) * interval


def window_end(elapsed: float, longest: float, *, fine: bool) -> float:
    """The offset at which a complete window, with all that was measured, ends if it begins at `elapsed`."""
    if fine and elapsed * LONG_SHARE > longest:
        return elapsed * (1 + LONG_SHARE)
    return next_offset(elapsed, longest, first=FIRST_WINDOW)


def busy_window_end(elapsed: float) -> float:
    """The earliest end of that window if the job ran since the last sample; `window_end` is then the latest."""
    return elapsed + max(elapsed * BUSY_SHARE, FIRST_FINE)


def fine_window_end(elapsed: float, longest: float) -> float:
    """The end of a window of levels and CPU time, which are read often; infinite once other windows are as short."""
    gap = max(elapsed * FINE_SHARE, FIRST_FINE)
    return elapsed + gap if gap < longest else float("inf")


SHORTEST_PEEK = 0.005
_PEEK_SHARE = 0.02
"""The gap between two peeks, as a share of the time that the job runs."""
_LONGEST_PEEK, _LONGEST_IDLE_PEEK = 0.1, 0.4


def peek_gap(elapsed: float, *, ran: bool) -> float:
    """Seconds until the next peek: a look at the levels of a job between samples.

    A change of a level is noticed half a gap late on average, and counted from the middle of the gap: a mean is off by
    1 % of the change at most. So the gaps grow with the age of the job, and may become longer while it does not run.
    """
    return min(max(elapsed * _PEEK_SHARE, SHORTEST_PEEK), _LONGEST_PEEK if ran else _LONGEST_IDLE_PEEK)
