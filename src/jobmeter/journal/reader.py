"""Reads journals, also those whose writer died or whose disk was full.

Usually a file holds one run. It may hold many: see `jobmeter.journal.writer`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jobmeter.errors import StoreError, quote
from jobmeter.journal.lines import LONGEST_LINE, open_journal, parse_line, read_lines, skip_line, too_long
from jobmeter.journal.writer import SCHEMA
from jobmeter.model import Status
from jobmeter.record.checks import check_texts
from jobmeter.record.read import identity_of
from jobmeter.record.validate import (
    check_header_fields,
    check_labels,
    check_processes,
    check_record,
    problem_of_window,
)

if TYPE_CHECKING:
    from jobmeter.record.types import Header, Record

_NO_COLUMNS = (b"[", b'{"processes"', b'{"record"', b'{"labels"', b'{"removed"')
"""Beginnings of lines that do not declare columns."""
_HEADER_ID = re.compile(rb'\{"schema":"%s","id":"([A-Za-z0-9][\w-]{0,63})"' % re.escape(SCHEMA.encode()))


class JournalWindow(NamedTuple):
    seconds: float
    samples: int
    cells: dict[str, Any]


class Journal(NamedTuple):
    """The journal of one run."""

    header: Header  # schema and `id` alone, if it is not valid and there is no record to use
    windows: list[JournalWindow]
    processes: list[tuple[float, list[Any]]]  # (seconds, the processes that lived then)
    record: Record | None  # None: its writer was stopped before the end
    problems: list[str]  # lines that could not be read, with their numbers


class RunLocation(NamedTuple):
    """Where a run begins in a file of many."""

    run_id: str
    offset: int = 0
    line: int = 1


def read_journal(path: str, location: RunLocation | None = None) -> Journal:
    """Read what can be read of one run; the first run if there is no `location`.

    Raises StoreError only if the file or the header of the run cannot be read.
    """
    for journal in _read(path, location):
        if location is None or journal.header.get("id") == location.run_id:
            return journal
    if location is None:
        raise StoreError(f"{path}: line 1 is not the header of a journal")
    raise StoreError(f"{path}: run {location.run_id} is not there any more")


def read_shared(path: str) -> dict[str, Any]:
    """What line 1 of a file of many runs has for all of them; empty if line 1 is the header of one run."""
    with open_journal(path) as file:
        try:
            first = parse_line(file.readline(LONGEST_LINE))
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
    return shared_part(first)[0]


def shared_part(first: Any) -> tuple[dict[str, Any], str | None]:
    """What line 1 has for all runs, and what is wrong with it. If something is wrong, the first is empty."""
    shared = first.get("shared") if isinstance(first, dict) else None
    if shared is None:
        return {}, None
    problem = check_header_fields(shared)
    return (shared, None) if problem is None else ({}, f"shared{problem}")


def check_schema(path: str, number: int, header: Any) -> None:
    """Raise StoreError if this is not a header that this version reads."""
    if not isinstance(header, dict) or "schema" not in header:
        raise StoreError(f"{path}: line {number} is not the header of a journal")
    if header["schema"] != SCHEMA:
        raise StoreError(
            f"{path}: line {number} is written as {quote(header['schema'])}, this version reads {SCHEMA}. "
            "Upgrade jobmeter."
        )


def header_id(line: bytes, header: Any = None) -> str | None:
    """The id of the run that a header begins; None when it has none."""
    quick = quick_id(line)
    if quick is not None:
        return quick
    run_id = header.get("id") if isinstance(header, dict) else None
    return run_id if isinstance(run_id, str) else None


def quick_id(line: bytes) -> str | None:
    """The id in a header as `run` writes it, found without parsing; None for any other line."""
    match = _HEADER_ID.match(line)
    return match[1].decode() if match is not None and line.endswith(b"}\n") else None


def begins_with_another(path: str, run_ids: Container[str]) -> bool:
    """Whether the first run of a file is not in `run_ids`: then the index is wrong, or another program changed it."""
    try:
        with open_journal(path) as file:
            first = quick_id(file.readline(LONGEST_LINE))
    except (StoreError, OSError):
        return False
    return first is not None and first not in run_ids


def skipped(path: str, number: int, problem: str) -> str:
    """The message for a line whose values are not valid."""
    return f"{path}: line {number} was skipped: {problem.lstrip('. ')}"


def unreadable(path: str, number: int, line: bytes) -> str:
    torn = "" if line.endswith(b"\n") else " (incomplete: its writer was stopped here)"
    return f"{path}: line {number} cannot be read and was skipped{torn}"


def final_record(record: Any) -> Any:
    """The record that ended a journal, `detached` where it says `running`.

    A record is written when measuring has ended: earlier versions wrote `running` when `attach` was stopped.
    """
    outcome = record.get("outcome") if isinstance(record, dict) else None
    if isinstance(outcome, dict) and outcome.get("status") == Status.RUNNING:
        outcome["status"] = Status.DETACHED.value
    return record


def valid_record(record: Any, run_id: str) -> tuple[Record | None, str | None]:
    """The record that ended a journal, or what is wrong with it."""
    problem = check_record(final_record(record))
    if problem is None and record["id"] != run_id:
        problem = ".id is that of another run"
    return (None, f"record{problem}") if problem is not None else (cast("Record", record), None)


def apply_labels(labels: dict[str, Any], changes: Any) -> dict[str, Any]:
    """The labels after a change; a label that is set to null is removed."""
    merged = {**labels, **changes} if isinstance(changes, dict) else labels
    return {key: value for key, value in merged.items() if value is not None}


def _read(path: str, location: RunLocation | None) -> Iterator[Journal]:
    shared = read_shared(path) if location is not None and location.offset else {}
    reading = _Reading(path, shared, location)
    run_id = location.run_id if location is not None else None
    with open_journal(path) as file:
        try:
            file.seek(location.offset if location is not None else 0)
            for number, line in enumerate(read_lines(file), start=location.line if location is not None else 1):
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    skip_line(file)
                    reading.skip(number)
                    continue
                ended = reading.process_line(number, line)
                if ended is not None and run_id is not None and ended == run_id:
                    yield reading.runs.pop(run_id).journal
                    return
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
    yield from (run.journal for run in reading.runs.values())


class _Run:
    """One run while it is read."""

    def __init__(self, header: Header, problems: list[str]) -> None:
        self.journal = Journal(header, [], [], None, problems)
        self.columns: list[str] | None = None
        self.kinds = {key: about["kind"] for key, about in header.get("measurements", {}).items()}

    def relabel(self, changes: Any) -> None:
        for part in (self.journal.header, self.journal.record):
            if part is not None:
                part["labels"] = apply_labels(part.get("labels", {}), changes)

    def end(self, record: Record) -> None:
        header = self.journal.header
        if "name" not in header:
            header = cast("Header", {**identity_of(record), **header})
        self.journal = self.journal._replace(header=header, record=record)


class _Reading:
    """Takes line after line and assigns each to its run."""

    def __init__(self, path: str, shared: dict[str, Any], location: RunLocation | None) -> None:
        self.runs: dict[str, _Run] = {}
        self._path = path
        self._shared = shared
        self._location = location
        self._current: _Run | None = None

    def process_line(self, number: int, line: bytes) -> str | None:
        """Process one line; returns the id of the run that the line ends, else None."""
        if line == b"\n":
            if number == 1:
                check_schema(self._path, number, None)
            return None
        entry = parse_line(line)
        first = 1 if self._location is None else self._location.line
        if number in (1, first) or (isinstance(entry, dict) and "schema" in entry):
            self._begin(number, line, entry)
            return None
        if isinstance(entry, dict) and isinstance(entry.get("run"), str):
            run = self.runs.get(entry["run"])
            if "labels" in entry:
                if run is not None and check_labels(entry["labels"]) is None:
                    run.relabel(entry["labels"])
            else:
                self._current = run
            return None
        if isinstance(entry, dict) and isinstance(entry.get("removed"), str):
            self.runs.pop(entry["removed"], None)
            return None
        return self._add_entry(number, line, entry)

    def skip(self, number: int) -> None:
        """Take note of a line that is too long to be read."""
        if number == 1:
            raise StoreError(too_long(self._path, number))
        if self._current is not None:
            self._current.journal.problems.append(too_long(self._path, number))

    def _begin(self, number: int, line: bytes, entry: Any) -> None:
        run_id = header_id(line, entry)
        try:
            check_schema(self._path, number, entry)
            if "shared" in entry:
                self._shared, _ = shared_part(entry)
                return
            if run_id is None:
                raise StoreError(f"{self._path}: line {number} is a header without an id")
        except StoreError as error:
            if run_id is not None and self._location is not None and number == self._location.line:
                # The index, which does not parse every header, has a run that begins here.
                self._current = self.runs[run_id] = _Run(cast("Header", {"schema": SCHEMA, "id": run_id}), [str(error)])
                return
            if number == 1:
                raise
            self._current = None
            if self.runs:
                next(reversed(self.runs.values())).journal.problems.append(str(error))
            return
        header: Any = {**self._shared, **entry, "id": run_id}
        problems: list[str] = []
        problem = check_header_fields(header)
        if problem is not None:
            problems.append(skipped(self._path, number, f"header{problem}"))
            header = {"schema": SCHEMA, "id": run_id}
        self._current = self.runs[run_id] = _Run(header, problems)

    def _add_entry(self, number: int, line: bytes, entry: Any) -> str | None:
        run = self._current
        if run is None:
            return None  # its header could not be read, and that was reported
        journal, columns = run.journal, run.columns
        problem: str | None = None
        if isinstance(entry, list) and columns is not None and len(entry) == len(columns) + 2:
            window = JournalWindow(entry[0], entry[1], dict(zip(columns, entry[2:])))
            problem = problem_of_window(*window, run.kinds)
            if problem is None:
                journal.windows.append(window)
        elif isinstance(entry, dict) and "columns" in entry and check_texts(entry["columns"]) is None:
            run.columns = entry["columns"]
        elif isinstance(entry, dict) and isinstance(entry.get("gap"), dict):
            gap = entry["gap"]
            journal.problems.append(f"line {number}: {gap.get('windows')} windows are missing here: {gap.get('why')}")
        elif isinstance(entry, dict) and "processes" in entry:
            problem = check_processes(entry["processes"])
            if problem is None:
                journal.processes.append((journal.windows[-1].seconds if journal.windows else 0.0, entry["processes"]))
        elif isinstance(entry, dict) and "record" in entry:
            run_id = journal.header["id"]
            record, problem = valid_record(entry["record"], run_id)
            if record is not None:
                run.end(record)
                return run_id
        else:
            journal.problems.append(unreadable(self._path, number, line))
            if not line.startswith(_NO_COLUMNS):
                run.columns = None  # this line may have declared other columns
        if problem is not None:
            journal.problems.append(skipped(self._path, number, problem))
        return None
