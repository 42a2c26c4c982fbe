"""Progress of long work: a line on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_OFTEN = 500


def counted(items: Iterable[Item], label: str) -> Iterator[Item]:
    """The items as they are made, with a line on stderr that shows how many there were so far."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console

    with Console(stderr=True).status(label) as status:
        for number, item in enumerate(items, start=1):
            yield item
            if number % _OFTEN == 0:
                status.update(f"{label}: {number:,}")
