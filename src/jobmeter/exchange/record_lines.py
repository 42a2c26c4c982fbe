"""Whole run records as lines of JSON: what `export --records` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from jobmeter.byte_text import json_text
from jobmeter.exchange.pieces import Piece, journal_at, pieces
from jobmeter.exchange.records import line_of
from jobmeter.journal.reader import Journal
from jobmeter.model import Status
from jobmeter.store import Store
from jobmeter.store.index.unfinished import record_so_far
from jobmeter.store.store import IndexedRun


def record_pieces(store: Store, selected: Iterable[IndexedRun], *, with_windows: bool) -> Iterator[Piece]:
    """The records of these runs as lines of JSON, in pieces."""

    def read(batch: list[IndexedRun]) -> Piece:
        journals = [(run, journal_at(run)) for run in batch]
        lines = [_line(run, journal, with_windows) for run, journal in journals if journal is not None]
        missing = [run.run_id for run, journal in journals if journal is None]
        return Piece(len(batch), len(lines), "".join(lines), missing)

    return pieces(store, selected, read)


def _line(run: IndexedRun, journal: Journal, with_windows: bool) -> str:
    labels = json.loads(run.labels)
    journal.header["labels"] = labels
    if "name" not in journal.header:
        journal.header["name"] = run.name  # neither header nor record is valid
    record = journal.record or record_so_far(journal, Status(run.status))
    record["labels"] = labels
    windows = journal.windows if with_windows else None
    return json_text(line_of(record, journal.header.get("measurements", {}), windows)) + "\n"
