"""Writes the journal of one run. One writer, one file, append only, no locks.

Line 1 is the header: the run's identity and the descriptions of what is measured.
Then come windows as arrays `[seconds, samples, cell, …]` in the order of the last
`{"columns": […]}` seen, and at the end `{"record": {…}}`, the run record.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from jobmeter.errors import StoreError
from jobmeter.model import Measurement, Record

SCHEMA = "jobmeter.journal/1"


class JournalWriter:
    """A failure to write is told once, through `failed`, and never raised: the job goes on."""

    def __init__(self, store: str, run_id: str) -> None:
        """Make the file; StoreError when the store cannot be written."""
        self.path = journal_path(store, run_id)
        self.failed: str | None = None
        self._columns: list[str] = []
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._descriptor = os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_EXCL, 0o666
            )
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from None

    def header(self, identity: Record, measurements: dict[str, Measurement]) -> None:
        described = {key: measurement.described() for key, measurement in measurements.items()}
        self._append({"schema": SCHEMA, **identity, "measurements": described})

    def window(self, seconds: float, samples: int, cells: dict[str, Any], processes: list[Any]) -> None:
        columns = list(cells)
        if columns != self._columns:
            self._columns = columns
            self._append({"columns": columns})
        self._append([round(seconds, 2), samples, *cells.values()])
        if processes:
            self._append({"processes": processes})

    def record(self, record: Record) -> None:
        """The outcome: the last line."""
        self._append({"record": record})
        self.sync()

    def sync(self) -> None:
        """Have what was written survive a crash of the machine."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        os.close(self._descriptor)

    def discard(self) -> None:
        """Leave nothing: the job never began."""
        os.close(self._descriptor)
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _append(self, line: Any) -> None:
        if self.failed is not None:
            return
        # Surrogates stand for bytes of file names that are no UTF-8; JSON escapes keep them.
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failed = f"{self.path}: {error.strerror}"


def journal_path(store: str, run_id: str) -> str:
    return f"{store}/journal/{run_id}.jsonl"
