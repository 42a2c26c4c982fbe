"""A run record as it is reported: what was recorded, and the findings that follow from it."""

from __future__ import annotations

from collections.abc import Iterable

from jobmeter.analyse.findings import SHORTEST_GROWTH, findings
from jobmeter.analyse.timeline import samples
from jobmeter.errors import StoreError
from jobmeter.light_typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobmeter.journal.reader import JournalWindow
    from jobmeter.record.types import Record


def with_findings(record: Record, windows: Iterable[JournalWindow]) -> Record:
    """The record with its findings: what `run --report` writes and `show --json` prints.

    Findings are not stored: the version of jobmeter that reads a record applies its rules, to old records too.
    """
    course = samples((window.seconds, window.cells) for window in windows)
    whole: Any = {**record, "findings": [finding._asdict() for finding in findings(record, course)]}
    reported: Record = whole
    return reported


def windows_for_findings(journal: str | None, record: Record) -> list[JournalWindow]:
    """The windows of a run that was just measured; empty if no finding needs them, or they cannot be read."""
    if journal is None or record.get("wall_seconds", 0.0) < SHORTEST_GROWTH:
        return []
    from jobmeter.journal.reader import RunLocation, read_journal  # late: the import takes as long as a short run

    try:
        return read_journal(journal, RunLocation(record["id"])).windows
    except StoreError:
        return []  # all other findings need only the record
