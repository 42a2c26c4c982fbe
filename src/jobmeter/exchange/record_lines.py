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
from jobmeter.store.store import RunPlace


def record_pieces(store: Store, places: Iterable[RunPlace], *, with_windows: bool) -> Iterator[Piece]:
    """The records of these runs as lines of JSON, in pieces."""

    def read(batch: list[RunPlace]) -> Piece:
        journals = [(place, journal_at(place)) for place in batch]
        lines = [_line(place, journal, with_windows) for place, journal in journals if journal is not None]
        missing = [place.run_id for place, journal in journals if journal is None]
        return Piece(len(batch), len(lines), "".join(lines), missing)

    return pieces(store, places, read)


def _line(place: RunPlace, journal: Journal, with_windows: bool) -> str:
    labels = json.loads(place.labels)
    journal.header["labels"] = labels
    if "name" not in journal.header:
        journal.header["name"] = place.name  # neither header nor record is valid
    record = journal.record or record_so_far(journal, Status(place.status))
    record["labels"] = labels
    windows = journal.windows if with_windows else None
    return json_text(line_of(record, journal.header.get("measurements", {}), windows)) + "\n"
