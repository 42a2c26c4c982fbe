"""Writes journals. One writer, one file, append only, no locks.

Line 1 is the header: the run's identity and the descriptions of what is measured.
Then come windows as arrays `[seconds, samples, cell, …]` in the order of the last
`{"columns": […]}` seen, and at the end `{"record": {…}}`, the run record.

A file of many runs begins with `{"schema": …, "shared": {…}}`: what the headers that
follow have in common. Each header begins a run, and the lines after it are of that run;
`{"run": id}` says that those which follow are of an earlier one, so that runs may overlap.

What may be appended to a run at any time, also by others: `{"labels": {…}, "run": id}`
changes labels (null takes one away), `{"removed": id}` takes the run out of its file.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from jobmeter.errors import StoreError
from jobmeter.model import Measurement, Record

SCHEMA = "jobmeter.journal/1"


class JournalFile:
    """A file that only grows. A failure to write is told once, through `failed`, and never raised."""

    def __init__(self, path: str) -> None:
        """Make the file; StoreError when the store cannot be written."""
        self.path = path
        self.failed: str | None = None
        self.current = ""  # the run that lines without a word about it are of
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_EXCL, 0o666)
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from None

    def append(self, *lines: Any) -> None:
        if self.failed is not None:
            return
        data = b"".join(encode(line) for line in lines)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._fail(error)

    def sync(self) -> None:
        """Have what was written survive a crash of the machine."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        os.close(self._descriptor)

    def _fail(self, error: OSError) -> None:
        self.failed = f"{self.path}: {error.strerror}"


class JournalWriter:
    """Writes one run, to a file of its own or into a `shared` one. No failure is raised: the job goes on."""

    def __init__(self, store: str, run_id: str, shared: JournalFile | None = None) -> None:
        """Make the file; StoreError when the store cannot be written."""
        self._run_id = run_id
        self._shared = shared is not None
        self._file = shared or JournalFile(journal_path(store, run_id))
        self._columns: list[str] = []
        self.path = self._file.path

    @property
    def failed(self) -> str | None:
        return self._file.failed

    def header(self, identity: Record, measurements: dict[str, Measurement]) -> None:
        self.begin({**identity, "measurements": {key: m.described() for key, m in measurements.items()}})

    def begin(self, header: Record) -> None:
        """The header, of what was described before or is described in the shared part."""
        self._file.current = self._run_id
        self._file.append({"schema": SCHEMA, **header})

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
        if not self._shared:
            self._file.sync()

    def close(self) -> None:
        if not self._shared:
            self._file.close()

    def discard(self) -> None:
        """Leave nothing: the job never began."""
        if self._shared:
            self._file.append({"removed": self._run_id})
            return
        self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _append(self, line: Any) -> None:
        if self._shared and self._file.current != self._run_id:
            self._file.current = self._run_id
            self._file.append({"run": self._run_id}, line)
        else:
            self._file.append(line)


def shared_journal(store: str, name: str, shared: Record) -> JournalFile:
    """A new file for many runs; `shared` is what their headers have in common. Whoever makes it syncs and closes it."""
    file = JournalFile(journal_path(store, name))
    file.append({"schema": SCHEMA, "shared": shared})
    return file


def append_to_journal(path: str, line: Record) -> None:
    """Add a line about a run to its file. StoreError when that cannot be written."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, (b"\n" if torn else b"") + encode(line))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None


def encode(line: Any) -> bytes:
    # Surrogates stand for bytes of file names that are no UTF-8; JSON escapes keep them.
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def journal_path(store: str, run_id: str) -> str:
    return f"{store}/journal/{run_id}.jsonl"
