"""Reads the journals of many runs in several processes, and hands over what they made of them piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.journal.reader import Journal, RunLocation, read_journal
from jobmeter.store import Selection, Store
from jobmeter.store.ordered_map import map_in_order
from jobmeter.store.store import RunPlace

_RUNS_AT_ONCE = 200


class Piece(NamedTuple):
    """What came of some runs. Plain values, for it comes from another process."""

    runs: int
    rows: int
    content: Any
    missing: list[str]  # runs that are not where they were


def pieces(store: Store, places: Iterable[RunPlace], read: Callable[[list[RunPlace]], Piece]) -> Iterator[Piece]:
    """`read` of the runs, many at once, in their order. Those that were moved meanwhile come last."""
    missing: list[str] = []
    for values in map_in_order(lambda batch: tuple(read([RunPlace(*each) for each in batch])), in_batches(places)):
        piece = Piece(*values)
        missing += piece.missing
        yield piece
    if missing:
        store.update()
        moved = [place for run_id in missing for place in store.places(Selection(where=f'id = "{run_id}"'))]
        yield read(moved)


def in_batches(places: Iterable[RunPlace]) -> Iterator[list[tuple[Any, ...]]]:
    """The places, many at once, as plain tuples."""
    waiting = iter(places)
    while batch := [tuple(place) for place in islice(waiting, _RUNS_AT_ONCE)]:
        yield batch


def journal_at(place: RunPlace) -> Journal | None:
    """The journal of a run; None when it is not there any more."""
    # If the file was replaced meanwhile, the run may be in another place of it.
    for location in (RunLocation(place.run_id, place.offset, place.line), RunLocation(place.run_id)):
        try:
            return read_journal(place.path, location)
        except StoreError:
            continue
    return None
