"""The newest runs of names, with their commands: enough to see whether a name stands for one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.store.query.selection import Selection

if TYPE_CHECKING:
    from jobmeter.store import Store

_NEWEST = 100
"""Runs of each name."""
_MOST_NAMES = 20


def newest_runs(store: Store, names: Iterable[str]) -> Iterator[StoredRun]:
    """Of the first names, some of the newest runs of each: an answer that takes no time among a million of runs."""
    for name in list(dict.fromkeys(names))[:_MOST_NAMES]:
        # As an expression: a name may have brackets in it, and is then no glob that matches itself.
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        yield from store.runs(Selection(where=f'name = "{quoted}"', limit=_NEWEST))
