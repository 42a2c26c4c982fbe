"""When to look at a job: densely at its start, then at the interval, without drift; and when its windows end."""

from __future__ import annotations

FIRST = 0.01
"""Seconds after the start of the first sample; the gaps double from there up to the interval."""


FIRST_WINDOW = 1.0
"""The same for windows: the first figures of a job reach its journal early, in case jobmeter is killed."""
FIRST_FINE = 0.015
FINE_SHARE = 0.02
"""A fine window lasts so many seconds, or this share of the time so far: some 60 windows in the first second, and 115
more each time that the age of the job grows tenfold."""
BUSY_SHARE = 0.25
"""The same for windows with all that samples read, of a job that runs: they are larger, and have other columns."""
LONG_SHARE = 0.001
"""Of the time so far: windows of a job that runs for very long. A journal then grows with the logarithm of its age."""


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
    # A multiple may be a hair below itself in floating point.
    return (int(elapsed / interval + 1e-6) + 1) * interval


def window_end(elapsed: float, longest: float, *, fine: bool) -> float:
    """The offset at which the window that begins at `elapsed` ends, with all that was measured in it."""
    if fine and elapsed * LONG_SHARE > longest:
        return elapsed * (1 + LONG_SHARE)
    return next_offset(elapsed, longest, first=FIRST_WINDOW)


def busy_window_end(elapsed: float) -> float:
    """The same, at the earliest, for a job that ran since the last sample; `window_end` is then at the latest."""
    return elapsed + max(elapsed * BUSY_SHARE, FIRST_FINE)


def fine_window_end(elapsed: float, longest: float) -> float:
    """The same for a window of what is read often, levels and CPU time; infinite once others are as short."""
    gap = max(elapsed * FINE_SHARE, FIRST_FINE)
    return elapsed + gap if gap < longest else float("inf")


SHORTEST_PEEK = 0.005
_PEEK_SHARE = 0.02
"""The gap between two peeks, as a share of the time that the job runs."""
_LONGEST_PEEK, _LONGEST_IDLE_PEEK = 0.1, 0.4


def peek_gap(elapsed: float, *, ran: bool) -> float:
    """Seconds until the next look, between samples, at the levels of a job.

    A change of a level is noticed half a gap late on average, and counted from the middle of the gap: a mean is off by
    1 % of the change at most. So the gaps grow with the job. While it does not run, they may become longer.
    """
    return min(max(elapsed * _PEEK_SHARE, SHORTEST_PEEK), _LONGEST_PEEK if ran else _LONGEST_IDLE_PEEK)
