"""Reads the journals of many runs in several processes, and yields their results piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.journal.reader import Journal, RunLocation, read_journal
from jobmeter.store import Selection, Store
from jobmeter.store.ordered_map import map_in_order
from jobmeter.store.store import IndexedRun

_RUNS_AT_ONCE = 200


class Piece(NamedTuple):
    """The result for a batch of runs. It has only plain values, because it comes from another process."""

    runs: int
    rows: int
    content: Any
    missing: list[str]  # ids of runs that are not where the index says


def pieces(store: Store, selected: Iterable[IndexedRun], read: Callable[[list[IndexedRun]], Piece]) -> Iterator[Piece]:
    """Yield what `read` returns for batches of runs, in their order. Runs that were moved since come last."""
    missing: list[str] = []
    for values in map_in_order(lambda batch: tuple(read([IndexedRun(*each) for each in batch])), in_batches(selected)):
        piece = Piece(*values)
        missing += piece.missing
        yield piece
    if missing:
        store.update()
        moved = [run for run_id in missing for run in store.indexed_runs(Selection(where=f'id = "{run_id}"'))]
        yield read(moved)


def in_batches(selected: Iterable[IndexedRun]) -> Iterator[list[tuple[Any, ...]]]:
    """The runs in batches, as plain tuples."""
    waiting = iter(selected)
    while batch := [tuple(run) for run in islice(waiting, _RUNS_AT_ONCE)]:
        yield batch


def journal_at(run: IndexedRun) -> Journal | None:
    """The journal of a run; None if it is not there any more."""
    # If the file was replaced, the run may be at another offset.
    for location in (RunLocation(run.run_id, run.offset, run.line), RunLocation(run.run_id)):
        try:
            return read_journal(run.path, location)
        except StoreError:
            continue
    return None
