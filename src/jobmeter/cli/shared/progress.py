"""Progress of long work: a line on a terminal that is cleared at the end, nothing in a pipe."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from jobmeter.cli.shared.output import show_passing_line

Item = TypeVar("Item")
_PAUSE = 0.1
"""The least time between two changes of the line, in seconds: faster changes cannot be read."""


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line in place of the previous one; the last one is cleared at the end."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda line: None
        return
    next_time = 0.0

    def show(line: str) -> None:
        nonlocal next_time
        now = time.monotonic()
        if now >= next_time:
            next_time = now + _PAUSE
            show_passing_line(line)

    try:
        yield show
    finally:
        show_passing_line("")


def counted(items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items, and show on a line how many there were so far, and of how many if `total` is given."""
    of = "" if total is None else f" of {total:,}"
    with progress() as show:
        for number, item in enumerate(items, start=1):
            yield item
            show(f"{label}: {number:,}{of}")
