"""Reads the newest runs of names, whose commands show whether a name stands for one job."""

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
    """Some of the newest runs of each of the first names: quick even if a million runs are stored."""
    for name in list(dict.fromkeys(names))[:_MOST_NAMES]:
        # As an expression: a name with brackets, taken as a glob, would not match itself.
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        yield from store.runs(Selection(where=f'name = "{quoted}"', limit=_NEWEST))
