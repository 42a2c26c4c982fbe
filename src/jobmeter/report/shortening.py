"""Names that are too long for their column, shortened in the middle: `train-lr0.…-seed12`.

The beginning and the end of a name say most. Where names would become the same, the part in which they differ is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

_ELLIPSIS = "…"
_MANY = 2000
"""With more names than this, only a few ways to shorten them are tried."""


class _Cut(NamedTuple):
    """What is kept of a name: this many columns of its beginning, of the part from `start` on, and of its end."""

    head: int
    start: int
    middle: int
    tail: int


def cell_width(words: str) -> int:
    """How many columns of a terminal a text takes."""
    if words.isascii():
        return len(words)
    from rich.cells import cell_len  # late: most texts are ASCII

    return cell_len(words)


def shorten(names: Sequence[str], width: int) -> dict[str, str]:
    """Each name in `width` columns or less; as many of them as possible stay distinct."""
    distinct = list(dict.fromkeys(names))
    long = [name for name in distinct if cell_width(name) > width]
    taken = set(distinct) - set(long)
    best: dict[str, str] = {}
    most = -1
    for cut in islice(_cuts(long, width), None if len(long) <= _MANY else 3):
        shortened = {name: _apply(cut, name) for name in long}
        count = len(set(shortened.values()) | taken)
        if count > most:
            best, most = shortened, count
        if count == len(distinct):
            break
    return {name: best.get(name, name) for name in distinct}


def distinct_width(names: Sequence[str], least: int) -> int:
    """The least width, at least `least`, in which all names stay distinct."""
    distinct = set(names)
    longest = max(map(cell_width, distinct), default=0)
    for width in range(least, longest):
        if len(set(shorten(list(distinct), width).values())) == len(distinct):
            return width
    return max(longest, least)


def _cuts(names: Sequence[str], width: int) -> Iterator[_Cut]:
    """The ways to shorten these names, the best first."""
    room = width - 1
    half = (room + 1) // 2
    yield _Cut(half, 0, 0, room - half)
    differ = _same_beginning(names)
    # Keep a little of the beginning or nothing, the part where they begin to differ, and the end or nothing.
    for head in (min(differ, width // 4), 0):
        rest = room - head - 1
        for tail in (rest // 2, 0):
            if rest - tail > 0:
                yield _Cut(head, max(differ - 1, 0), rest - tail, tail)
    for away in range(1, room + 1):
        for head in (half - away, half + away):
            if 0 <= head <= room:
                yield _Cut(head, 0, 0, room - head)


def _same_beginning(names: Sequence[str]) -> int:
    """The length of the common prefix of all names: that of the first and the last name in sorted order."""
    first, last = (min(names), max(names)) if names else ("", "")
    return next((n for n, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))


def _apply(cut: _Cut, name: str) -> str:
    if not cut.middle:
        return _head(name, cut.head) + _ELLIPSIS + _tail(name, cut.tail)
    middle = _head(name[cut.start :], cut.middle)
    head, tail = _head(name, cut.head), _tail(name, cut.tail)
    # Where nothing is left out, there is no ellipsis.
    before = head + _ELLIPSIS if cut.start > len(head) else name[: cut.start]
    after = name[cut.start + len(middle) :]
    return before + middle + (_ELLIPSIS + tail if len(after) > len(tail) else after)


def _head(name: str, width: int) -> str:
    if name.isascii():
        return name[:width]
    taken = 0
    for number, letter in enumerate(name):
        taken += cell_width(letter)
        if taken > width:
            return name[:number]
    return name


def _tail(name: str, width: int) -> str:
    return _head(name[::-1], width)[::-1]
