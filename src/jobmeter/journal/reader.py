"""Reads journals, also those whose writer died or whose disk was full."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.journal.writer import SCHEMA
from jobmeter.model import Record

_NO_COLUMNS = (b"[", b'{"processes"', b'{"record"')
"""How the lines begin that declare no columns."""


class JournalWindow(NamedTuple):
    seconds: float
    samples: int
    cells: dict[str, Any]


class Journal(NamedTuple):
    """All that one journal holds."""

    header: Record
    windows: list[JournalWindow]
    processes: list[tuple[float, list[Any]]]  # (seconds, the processes that lived then)
    record: Record | None  # None: its writer did not come to the end
    problems: list[str]  # lines that could not be read, with their numbers


def read_journal(path: str) -> Journal:
    """Read what can be read; StoreError only when there is no header to go by."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    header = _parse(lines[0])
    if not isinstance(header, dict) or "schema" not in header:
        raise StoreError(f"{path}: line 1 is not the header of a journal")
    if header["schema"] != SCHEMA:
        raise StoreError(f"{path}: written as {header['schema']}, this version reads {SCHEMA}. Upgrade jobmeter.")
    journal = Journal(header, [], [], None, [])
    columns: list[str] | None = None
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        entry = _parse(line)
        if isinstance(entry, list) and columns is not None and len(entry) == len(columns) + 2:
            journal.windows.append(JournalWindow(entry[0], entry[1], dict(zip(columns, entry[2:]))))
        elif isinstance(entry, dict) and isinstance(entry.get("columns"), list):
            columns = entry["columns"]
        elif isinstance(entry, dict) and "processes" in entry:
            journal.processes.append((journal.windows[-1].seconds if journal.windows else 0.0, entry["processes"]))
        elif isinstance(entry, dict) and "record" in entry:
            journal = journal._replace(record=entry["record"])
        else:
            torn = " (torn: its writer was stopped here)" if number == len(lines) else ""
            journal.problems.append(f"{path}: line {number} cannot be read and was skipped{torn}")
            if not line.startswith(_NO_COLUMNS):
                columns = None  # they may have been declared anew in this line
    return journal


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
