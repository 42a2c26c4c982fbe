"""What a job without a past shall request: a share of today's request, by how much of theirs other jobs needed."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

ROOM = 1.25
"""Times the share that a job needed, that a job like it is given."""
ASSUMED_JOBS = 4.0
"""Jobs whose shares are assumed, beside those that are known: any share is as likely."""
_ASSUMED_POINTS = 20
_MOST_JOBS = 200


class Share(NamedTuple):
    """Of one job: the largest part of its request that a run needed, and what a run's request holds."""

    needed: float
    held: float


def choose_share(shares: Collection[Share], failure: float, above: float = 0.0) -> float:
    """The share of least cost, above one that was not enough; `failure` is the price of one. All of it: 1."""
    newest = list(shares)[-_MOST_JOBS:]
    if not newest:
        return 1.0
    mean_held = sum(each.held for each in newest) / len(newest)
    mass = ASSUMED_JOBS / _ASSUMED_POINTS
    points = [(min(ROOM * each.needed, 1.0), each.held, 1.0) for each in newest]
    points += [((index + 1) / _ASSUMED_POINTS, mass * mean_held, mass) for index in range(_ASSUMED_POINTS)]
    points = sorted((point for point in points if point[0] > above), reverse=True)
    held = sum(part for _, part, _ in points)
    best, least, failing = 1.0, float("inf"), 0.0
    for share, part, mass in points:
        if (cost := share * held + failing) < least:
            best, least = share, cost
        failing += part + failure * mass
    return best
