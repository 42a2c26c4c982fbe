"""Reduce the points of a curve so that it looks the same: no peak and no trough is lost."""

from __future__ import annotations

from collections.abc import Sequence


def thin(low: Sequence[float | None], high: Sequence[float | None], most: int) -> list[int]:
    """The indexes of the points to keep, in order, about `most` of them, for a band between `low` and `high`.

    The points are cut into equal stretches. Of each, the lowest and the highest point are kept, and the first of
    adjacent missing points (None), so that a gap stays a gap. The first and the last point are always kept.
    For a single curve, pass it twice.
    """
    count = len(high)
    if count <= max(most, 2):
        return list(range(count))
    stretches = max((most - 2) // 2, 1)
    indices = {0, count - 1}
    for number in range(stretches):
        begin, end = count * number // stretches, count * (number + 1) // stretches
        indices.update(_extremes(low, high, begin, end))
    return sorted(indices)


def _extremes(low: Sequence[float | None], high: Sequence[float | None], begin: int, end: int) -> set[int]:
    lows, highs = low[begin:end], high[begin:end]
    if None in lows or None in highs:
        return _extremes_with_gaps(low, high, begin, end)
    return {begin + lows.index(min(lows)), begin + highs.index(max(highs))}  # type: ignore[type-var]


def _extremes_with_gaps(low: Sequence[float | None], high: Sequence[float | None], begin: int, end: int) -> set[int]:
    indices = set()
    lowest = highest = None
    for index in range(begin, end):
        bottom, top = low[index], high[index]
        if bottom is None or top is None:
            if index == 0 or low[index - 1] is not None:
                indices.add(index)
            continue
        if lowest is None or bottom < lowest[0]:
            lowest = (bottom, index)
        if highest is None or top > highest[0]:
            highest = (top, index)
    indices.update(extreme[1] for extreme in (lowest, highest) if extreme is not None)
    return indices
