"""What a job without stored runs shall request: a share of its request, by the shares that other jobs needed."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

ROOM = 1.25
"""Factor on the share that a job needed, for a job like it."""
ASSUMED_JOBS = 4.0
"""Jobs that are assumed in addition to the known ones: for them, all shares are equally likely."""
_ASSUMED_POINTS = 20
_MOST_JOBS = 200


class Share(NamedTuple):
    """One job: the largest share of its request that a run needed, and what the request of an average run holds."""

    needed: float
    requested_cost: float


def choose_share(shares: Collection[Share], failure: float, above: float = 0.0) -> float:
    """The share of least cost, above the share `above`, which was not enough; `failure` is the price of a failure.

    It is 1, the whole request, if no shares are known.
    """
    newest = list(shares)[-_MOST_JOBS:]
    if not newest:
        return 1.0
    mean_cost = sum(each.requested_cost for each in newest) / len(newest)
    mass = ASSUMED_JOBS / _ASSUMED_POINTS
    points = [(min(ROOM * each.needed, 1.0), each.requested_cost, 1.0) for each in newest]
    points += [((index + 1) / _ASSUMED_POINTS, mass * mean_cost, mass) for index in range(_ASSUMED_POINTS)]
    points = sorted((point for point in points if point[0] > above), reverse=True)
    requested_cost = sum(part for _, part, _ in points)
    best, least, failing = 1.0, float("inf"), 0.0
    for share, part, mass in points:
        if (cost := share * requested_cost + failing) < least:
            best, least = share, cost
        failing += part + failure * mass
    return best
