"""The jobs of a sweep differ by their parameters: each has a level, and chance is what runs of one job differ by."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from jobmeter.analyse.size.observation import COMPLETE, Observation

ALIKE = 1.25
"""Jobs of which none needs so many times what half of them need are taken for one."""


def as_largest(observations: Sequence[Observation]) -> list[Observation]:
    """The runs as if all were of the largest job: each times what that needs more than its own.

    Where no job ran twice it is the one run of the largest, unless they hardly differ: by what runs of one job differ
    is not known.
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
