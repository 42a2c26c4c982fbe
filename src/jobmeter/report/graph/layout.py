"""Place the boxes of a graph in columns, one per level, so that lines are short and rarely cross.

Pure functions: levels and edges in, places out. An edge over several levels passes through one place in each level
between; all edges from the same box share these places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Union

_ROUNDS = 12
_THIN = 0.35
"""The height of a passing line; that of a box is 1."""

_Passing = tuple[str, int]
"""The place where lines from a box pass a column: the name of the box, and the column."""
_Key = Union[str, _Passing]


class GridCell(NamedTuple):
    column: int  # 0, 1, 2 … from left to right
    row: float  # 0 is the top; boxes of a column are at least 1 apart


class Route(NamedTuple):
    """An edge, and the places it goes through between its boxes."""

    before: str
    after: str
    through: tuple[GridCell, ...]


class Layout(NamedTuple):
    places: dict[str, GridCell]
    routes: list[Route]
    columns: int
    rows: float


def lay_out(levels: Mapping[str, int], edges: Sequence[tuple[str, str]]) -> Layout:
    """The places of boxes with these levels. Edges to the same or an earlier level have no places between."""
    rank = {level: column for column, level in enumerate(sorted(set(levels.values())))}
    column_of = {key: rank[level] for key, level in levels.items()}
    columns: list[list[_Key]] = [[] for _ in rank]
    for key, column in column_of.items():
        columns[column].append(key)
    links = _Links()
    for before, after in edges:
        links.add(columns, (before, column_of[before]), (after, column_of[after]))
    _order(columns, links)
    rows = _rows(columns, links)
    places = {key: GridCell(column, rows[key]) for key, column in column_of.items()}
    routes = []
    for before, after in edges:
        between = range(column_of[before] + 1, column_of[after])
        routes.append(Route(before, after, tuple(GridCell(column, rows[before, column]) for column in between)))
    return Layout(places, routes, len(columns), max(rows.values(), default=-1.0) + 1)


class _Links:
    """The connections between places of neighbouring columns."""

    def __init__(self) -> None:
        self.left: dict[_Key, list[_Key]] = {}
        self.right: dict[_Key, list[_Key]] = {}

    def add(self, columns: list[list[_Key]], start: tuple[str, int], end: tuple[str, int]) -> None:
        """Connect two boxes, through places that are added to the columns between them."""
        (before, first), (after, last) = start, end
        if last <= first:
            return
        at: _Key = before
        for column in range(first + 1, last):
            passing = (before, column)
            if passing not in self.left:
                columns[column].append(passing)
                self._join(at, passing)
            at = passing
        self._join(at, after)

    def _join(self, left: _Key, right: _Key) -> None:
        self.right.setdefault(left, []).append(right)
        self.left.setdefault(right, []).append(left)


def _order(columns: list[list[_Key]], links: _Links) -> None:
    """Sort the places of every column by the mean position of their neighbours, on the left and the right in turn."""
    for _ in range(_ROUNDS):
        for neighbours, walk in ((links.left, range(1, len(columns))), (links.right, range(len(columns) - 2, -1, -1))):
            for column in walk:
                other = columns[column - 1 if neighbours is links.left else column + 1]
                # By share, not by index: a column of two may be next to one of twenty.
                shares = {key: (index + 0.5) / len(other) for index, key in enumerate(other)}
                own = {key: (index + 0.5) / len(columns[column]) for index, key in enumerate(columns[column])}
                columns[column].sort(key=_mean_of(neighbours, shares, own))


def _mean_of(
    neighbours: Mapping[_Key, Sequence[_Key]], at: Mapping[_Key, float], otherwise: Mapping[_Key, float]
) -> Callable[[_Key], float]:
    """A function that returns the mean position of the neighbours of a place, or its own position if it has none."""

    def mean(key: _Key) -> float:
        there = neighbours.get(key)
        return sum(at[each] for each in there) / len(there) if there else otherwise[key]

    return mean


def _rows(columns: list[list[_Key]], links: _Links) -> dict[_Key, float]:
    """The row of every place: in the order of its column, and as near to its neighbours as the others allow."""
    rows: dict[_Key, float] = {}
    tallest = max((_offsets(column)[-1] for column in columns if column), default=0.0)
    for column in columns:
        offsets = _offsets(column)
        rows.update({key: offset + (tallest - offsets[-1]) / 2 for key, offset in zip(column, offsets)})
    both = {key: [*links.left.get(key, ()), *links.right.get(key, ())] for key in rows}
    for round_ in range(_ROUNDS):
        for column in columns if round_ % 2 else columns[::-1]:
            mean_row = _mean_of(both, rows, rows)
            rows.update(zip(column, _spread([mean_row(key) for key in column], _offsets(column))))
    top = min(rows.values(), default=0.0)
    return {key: row - top for key, row in rows.items()}


def _offsets(column: Sequence[_Key]) -> list[float]:
    """The least distance of each place below the first place of the column."""
    offsets, below = [], 0.0
    for number, key in enumerate(column):
        size = 1.0 if isinstance(key, str) else _THIN
        below += size / 2 if number else 0.0
        offsets.append(below)
        below += size / 2
    return offsets


def _spread(target_rows: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """The rows nearest to the targets, by least squares, that keep the order and the least distances.

    Without the offsets, rows must not decrease: those that would are set to their mean (isotonic regression).
    """
    blocks: list[tuple[float, int]] = []  # sum and count
    for target, offset in zip(target_rows, offsets):
        total, count = target - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before = blocks.pop()
            total, count = total + before[0], count + before[1]
        blocks.append((total, count))
    level = [total / count for total, count in blocks for _ in range(count)]
    return [place + offset for place, offset in zip(level, offsets)]
