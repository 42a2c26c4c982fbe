"""When to sample a job: densely at its start, then at the interval, without drift."""

from __future__ import annotations

FIRST = 0.01
"""Seconds after the start of the first sample; the gaps double from there up to the interval."""


FIRST_WINDOW = 1.0
"""The same for windows: what is known of a job reaches its journal early, should jobmeter be killed."""


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


class Peek:
    """How often to look, between samples, whether the job's memory is growing.

    Looking costs some 30 µs. A job that took no page fault at the last look is looked at less often.
    """

    SHORTEST, LONGEST = 0.05, 0.4

    def __init__(self) -> None:
        self.gap = self.SHORTEST

    def seen(self, *, faults: bool) -> None:
        self.gap = self.SHORTEST if faults else min(self.gap * 2, self.LONGEST)
