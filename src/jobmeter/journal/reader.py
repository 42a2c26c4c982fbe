"""Reads journals, also those whose writer died or whose disk was full.

Usually a file holds one run. It may hold many: see `jobmeter.journal.writer`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.journal.writer import SCHEMA
from jobmeter.model import Status

if TYPE_CHECKING:
    from jobmeter.record.types import Header, Record

_NO_COLUMNS = (b"[", b'{"processes"', b'{"record"', b'{"labels"', b'{"removed"')
"""How the lines begin that declare no columns."""


class JournalWindow(NamedTuple):
    seconds: float
    samples: int
    cells: dict[str, Any]


class Journal(NamedTuple):
    """The journal of one run."""

    header: Header
    windows: list[JournalWindow]
    processes: list[tuple[float, list[Any]]]  # (seconds, the processes that lived then)
    record: Record | None  # None: its writer was stopped before the end
    problems: list[str]  # lines that could not be read, with their numbers


class RunLocation(NamedTuple):
    """Where in a file of many runs one begins."""

    run_id: str
    offset: int = 0
    line: int = 1


def read_journal(path: str, location: RunLocation | None = None) -> Journal:
    """Read what can be read of one run, the first if none is named.

    StoreError only when there is no header to go by.
    """
    for journal in _read(path, location):
        if location is None or journal.header.get("id") == location.run_id:
            return journal
    if location is None:
        raise StoreError(f"{path}: line 1 is not the header of a journal")
    raise StoreError(f"{path}: run {location.run_id} is not there any more")


def read_shared(path: str) -> dict[str, Any]:
    """What line 1 says of all runs of a file of many; empty where it is the header of one."""
    try:
        with open(path, "rb") as file:
            first = parse_line(file.readline())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    return shared_part(first)


def shared_part(first: Any) -> dict[str, Any]:
    shared = first.get("shared") if isinstance(first, dict) else None
    return shared if isinstance(shared, dict) else {}


def check_header(path: str, number: int, header: Any) -> None:
    """StoreError when this is no header that this version reads."""
    if not isinstance(header, dict) or "schema" not in header:
        raise StoreError(f"{path}: line {number} is not the header of a journal")
    if header["schema"] != SCHEMA:
        raise StoreError(f"{path}: written as {header['schema']}, this version reads {SCHEMA}. Upgrade jobmeter.")


def parse_line(line: bytes) -> Any:
    """The JSON of a line; None when it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def unreadable(path: str, number: int, line: bytes) -> str:
    torn = "" if line.endswith(b"\n") else " (torn: its writer was stopped here)"
    return f"{path}: line {number} cannot be read and was skipped{torn}"


def final_record(record: Any) -> Any:
    """The record that ended a journal, `detached` where it says `running`.

    A record is written when measuring has ended: earlier versions wrote `running` when `attach` was stopped.
    """
    outcome = record.get("outcome") if isinstance(record, dict) else None
    if isinstance(outcome, dict) and outcome.get("status") == Status.RUNNING:
        outcome["status"] = Status.DETACHED.value
    return record


def apply_labels(labels: dict[str, Any], changes: Any) -> dict[str, Any]:
    """The labels after a change; a label that became null is gone."""
    merged = {**labels, **changes} if isinstance(changes, dict) else labels
    return {key: value for key, value in merged.items() if value is not None}


def _read(path: str, location: RunLocation | None) -> Iterator[Journal]:
    reading = _Reading(path, read_shared(path) if location is not None and location.offset else {})
    run_id = location.run_id if location is not None else None
    try:
        with open(path, "rb") as file:
            file.seek(location.offset if location is not None else 0)
            for number, line in enumerate(file, start=location.line if location is not None else 1):
                ended = reading.take(number, line)
                if ended is not None and run_id is not None and ended == run_id:
                    yield reading.runs.pop(run_id).journal
                    return
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    yield from (run.journal for run in reading.runs.values())


class _Run:
    """One run while it is read."""

    def __init__(self, header: Header) -> None:
        self.journal = Journal(header, [], [], None, [])
        self.columns: list[str] | None = None

    def relabel(self, changes: Any) -> None:
        for part in (self.journal.header, self.journal.record):
            if part is not None:
                part["labels"] = apply_labels(part.get("labels", {}), changes)


class _Reading:
    """Takes line after line and assigns each to its run."""

    def __init__(self, path: str, shared: dict[str, Any]) -> None:
        self.runs: dict[str, _Run] = {}
        self._path = path
        self._shared = shared
        self._current: _Run | None = None

    def take(self, number: int, line: bytes) -> str | None:
        """Take one line; the id of the run, when it is the last of one."""
        if line == b"\n":
            if number == 1:
                check_header(self._path, number, None)
            return None
        entry = parse_line(line)
        if number == 1 or (isinstance(entry, dict) and "schema" in entry):
            self._begin(number, entry)
            return None
        if isinstance(entry, dict) and "run" in entry:
            run = self.runs.get(entry["run"])
            if "labels" in entry:
                if run is not None:
                    run.relabel(entry["labels"])
            else:
                self._current = run
            return None
        if isinstance(entry, dict) and "removed" in entry:
            self.runs.pop(entry["removed"], None)
            return None
        return self._give(number, line, entry)

    def _begin(self, number: int, entry: Any) -> None:
        try:
            check_header(self._path, number, entry)
        except StoreError as error:
            if number == 1:
                raise
            self._current = None
            if self.runs:
                next(reversed(self.runs.values())).journal.problems.append(str(error))
            return
        if "shared" in entry:
            self._shared = shared_part(entry)
            return
        header: Any = {**self._shared, **entry}
        self._current = _Run(header)
        self.runs[str(entry.get("id"))] = self._current

    def _give(self, number: int, line: bytes, entry: Any) -> str | None:
        run = self._current
        if run is None:
            return None  # its header could not be read, and that was reported
        journal, columns = run.journal, run.columns
        if isinstance(entry, list) and columns is not None and len(entry) == len(columns) + 2:
            journal.windows.append(JournalWindow(entry[0], entry[1], dict(zip(columns, entry[2:]))))
        elif isinstance(entry, dict) and isinstance(entry.get("columns"), list):
            run.columns = entry["columns"]
        elif isinstance(entry, dict) and "processes" in entry:
            journal.processes.append((journal.windows[-1].seconds if journal.windows else 0.0, entry["processes"]))
        elif isinstance(entry, dict) and "record" in entry:
            run.journal = journal._replace(record=final_record(entry["record"]))
            return str(journal.header.get("id"))
        else:
            journal.problems.append(unreadable(self._path, number, line))
            if not line.startswith(_NO_COLUMNS):
                run.columns = None  # they may have been declared again in this line
        return None
