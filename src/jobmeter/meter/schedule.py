"""When to look at a job: densely at its start, then at the interval, without drift."""

from __future__ import annotations

FIRST = 0.01
"""Seconds after the start of the first sample; the gaps double from there up to the interval."""


FIRST_WINDOW = 1.0
"""The same for windows: the first figures of a job reach its journal early, in case jobmeter is killed."""


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


SHORTEST_PEEK = 0.005


def peek_gap(elapsed: float, *, ran: bool) -> float:
    """Seconds until the next look, between samples, at the levels of a job.

    A level that changes unseen for 1 % of the time so far moves a mean by 1 % of the change, and half a gap is what a
    change is seen late on average: so the gaps grow with the job. They are longer while it does not run.
    """
    share, longest = (0.02, 0.1) if ran else (0.03, 0.6)
    return min(max(elapsed * share, SHORTEST_PEEK), longest)
