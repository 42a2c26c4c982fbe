"""Writes journals. One writer, one file, append only, no locks of the file system.

Line 1 is the header: the run's identity and the descriptions of what is measured.
Then come windows as arrays `[seconds, samples, cell, …]` in the order of the last
`{"columns": […]}` seen, and at the end `{"record": {…}}`, the run record.

A file of many runs begins with `{"schema": …, "shared": {…}}`: what the headers that
follow have in common. Each header begins a run, and the lines after it are of that run;
`{"run": id}` says that those which follow are of an earlier one, so that runs may overlap.

What may be appended to a run at any time, also by others: `{"labels": {…}, "run": id}`
changes labels (null removes one), `{"removed": id}` removes the run from its file.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from jobmeter.errors import StoreError
from jobmeter.model import Measurement

if TYPE_CHECKING:
    from jobmeter.record.types import Record

SCHEMA = "jobmeter.journal/1"


class RunJournal(Protocol):
    """Takes the lines of many runs. Whoever measures a job may be far from the file that they end up in."""

    path: str
    failed: str | None

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        """The header of a run; the lines that follow are of it."""

    def append(self, run_id: str, *lines: Any) -> None:
        """Lines of a run, together; runs of many threads may take turns."""


class JournalFile:
    """A file that only grows. A failure to write is reported once, through `failed`, and never raised."""

    def __init__(self, path: str, shared: Mapping[str, Any] | None = None) -> None:
        """Create the file; StoreError when the store cannot be written.

        `shared` is what the headers of its many runs have in common; None for a file of one run.
        """
        self.path = path
        self.failed: str | None = None
        self.shared = shared
        self._current = ""  # the run to which lines without `run` belong
        self._lock = threading.Lock()
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_EXCL, 0o666)
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from None
        if shared is not None:
            self._write(encode({"schema": SCHEMA, "shared": shared}))

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        """The header of a run; the lines that follow are of it."""
        shared = self.shared or {}
        header = {key: value for key, value in header.items() if key not in shared or shared[key] != value}
        with self._lock:
            self._current = run_id
            self._write(encode({"schema": SCHEMA, **header}))

    def append(self, run_id: str, *lines: Any) -> None:
        """Lines of a run, together; runs of many threads may take turns."""
        data = b"".join(map(encode, lines))
        with self._lock:
            if self.shared is not None and self._current != run_id:
                self._current = run_id
                data = encode({"run": run_id}) + data
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self.failed is not None:
            return
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._fail(error)

    def sync(self) -> None:
        """Sync the file, so that what was written survives a crash of the machine."""
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

    def __init__(self, store: str, run_id: str, shared: RunJournal | None = None) -> None:
        """Create the file; StoreError when the store cannot be written."""
        self._run_id = run_id
        self._own = JournalFile(journal_path(store, run_id)) if shared is None else None
        self._file: RunJournal = self._own or shared  # type: ignore[assignment]  # one of them is there
        self._columns: list[str] = []
        self.path = self._file.path

    @property
    def failed(self) -> str | None:
        return self._file.failed

    def header(self, identity: Mapping[str, Any], measurements: dict[str, Measurement]) -> None:
        self.begin({**identity, "measurements": {key: m.described() for key, m in measurements.items()}})

    def begin(self, header: Mapping[str, Any]) -> None:
        """The header, of what was described before."""
        self._file.begin(self._run_id, header)

    def window(self, seconds: float, samples: int, cells: dict[str, Any], processes: list[Any]) -> None:
        lines: list[Any] = [[round(seconds, 2), samples, *cells.values()]]
        columns = list(cells)
        if columns != self._columns:
            self._columns = columns
            lines.insert(0, {"columns": columns})
        if processes:
            lines.append({"processes": processes})
        self._file.append(self._run_id, *lines)

    def record(self, record: Record) -> None:
        """The outcome: the last line."""
        self._file.append(self._run_id, {"record": record})
        self.sync()

    def sync(self) -> None:
        """Sync the file, so that what was written survives a crash of the machine."""
        if self._own is not None:
            self._own.sync()

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def discard(self) -> None:
        """Remove the journal: the job never began."""
        if self._own is None:
            self._file.append(self._run_id, {"removed": self._run_id})
            return
        self._own.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def shared_journal(store: str, name: str, shared: Mapping[str, Any]) -> JournalFile:
    """A new file for many runs; `shared` is what their headers have in common. The caller syncs and closes it."""
    return JournalFile(journal_path(store, name), shared)


def append_to_journal(path: str, line: Mapping[str, Any]) -> None:
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
