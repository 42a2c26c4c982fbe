"""Size a sweep by its largest job: jobs differ in level by their parameters, and runs of one job by chance."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from jobmeter.analyse.size.observation import COMPLETE, Observation

ALIKE = 1.25
"""Jobs count as alike if none needs more than this many times the median need of all jobs."""


def as_largest(observations: Sequence[Observation]) -> list[Observation]:
    """The runs as if all were of the largest job: each is scaled by the ratio of the median needs of the two jobs.

    Jobs that ran once, except the largest, are left out. If no job ran twice, it is not known how far runs of one job
    differ: only the run of the largest is kept, or all runs as they are if the jobs are alike. Runs that did not
    complete are always kept as they are.
    """
    complete = [one for one in observations if one.ending == COMPLETE]
    levels: dict[str, list[float]] = {}
    for one in complete:
        levels.setdefault(one.name, []).append(one.value)
    if len(levels) < 2:
        return list(observations)
    middles = {name: median(values) for name, values in levels.items()}
    largest = max(middles, key=lambda name: middles[name])
    if len(levels) == len(complete):
        if middles[largest] <= ALIKE * median(middles.values()):
            return list(observations)
        return [one for one in observations if one.name == largest or one.ending != COMPLETE]
    repeated = {name for name, values in levels.items() if len(values) > 1} | {largest}
    return [
        one._replace(value=one.value * middles[largest] / middles[one.name]) if one.ending == COMPLETE else one
        for one in observations
        if one.name in repeated or one.ending != COMPLETE
    ]
