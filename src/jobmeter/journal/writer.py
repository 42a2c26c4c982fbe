"""Writes journals. One writer, one file, append only, no locks of the file system.

Line 1 is the header: the run's identity and the descriptions of what is measured.
Then come windows as arrays `[seconds, samples, cell, …]` in the order of the last
`{"columns": […]}` seen, and at the end `{"record": {…}}`, the run record.

A file of many runs begins with `{"schema": …, "shared": {…}}`: what the headers that
follow have in common. Each header begins a run, and the lines after it belong to that run;
the lines after `{"run": id}` belong to an earlier run, so that runs may overlap.

If the disk was full for a while, `{"gap": {"windows": N, "why": …}}` stands where windows are missing.

Two kinds of lines may be appended at any time, also by other programs: `{"labels": {…}, "run": id}`
changes labels (null removes one), `{"removed": id}` removes the run from its file.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterable, Mapping

from jobmeter.byte_text import json_text
from jobmeter.errors import StoreError
from jobmeter.light_typing import TYPE_CHECKING, Any, Protocol
from jobmeter.model import Measurement
from jobmeter.store_access import access_like, create, make_store_directory

if TYPE_CHECKING:
    from types import ModuleType

    from jobmeter.record.types import Record

SCHEMA = "jobmeter.journal/1"
_ABSENT: Any = object()
_lines_until_fast = 50


class RunJournal(Protocol):
    """Takes the lines of many runs. The process that measures a job need not be the one that writes the file."""

    path: str

    @property
    def failed(self) -> str | None:
        """The first failure; None if there was none."""

    def begin(self, run_id: str, header: Mapping[str, Any]) -> None:
        """Write the header of a run; the lines that follow belong to it."""

    def append(self, run_id: str, *lines: Any) -> None:
        """Append lines of a run, together; the runs of many threads may take turns."""


class JournalFile:
    """An append-only file. A failure to write is never raised; the first one is in `failed`.

    After a failure, writing is tried again with the next line: a full disk may have room by then. Headers and records
    are kept until then. Windows are dropped, and a line is written that says how many are missing.
    """

    def __init__(self, path: str, shared: Mapping[str, Any] | None = None) -> None:
        """Create the file. Raises StoreError if the store cannot be written.

        `shared` is what the headers of its many runs have in common; None for a file of one run.
        """
        self.path = path
        self.failed: str | None = None
        self.shared = shared
        self._current = ""  # the run to which lines without `run` belong
        self._lock = threading.Lock()
        self._owed: list[bytes] = []  # headers and records that could not be written yet
        self._missing: dict[str, int] = {}  # run → windows that were dropped
        try:
            store, directory = os.path.split(os.path.dirname(path))
            make_store_directory(store, directory)
            self._descriptor = create(path, access_like(os.path.dirname(path)), os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from None
        if shared is not None:
            self._write(encode({"schema": SCHEMA, "shared": shared}), keep=True)

    def begin(self, run_id: str, header: Mapping[str, Any], *lines: Any) -> None:
        """Write the header of a run; the `lines` and those that follow belong to it."""
        shared = self.shared or {}
        # First by identity: most are the same object, and comparing two descriptions takes longer than writing one.
        header = {
            key: value
            for key, value in header.items()
            if (common := shared.get(key, _ABSENT)) is not value and common != value
        }
        data = b"".join(map(encode, ({"schema": SCHEMA, **header}, *lines)))
        with self._lock:
            self._current = run_id
            self._write(data, keep=True)

    def append(self, run_id: str, *lines: Any) -> None:
        """Append lines of a run, together; the runs of many threads may take turns."""
        data = b"".join(map(encode, lines))
        with self._lock:
            # After a failure, the last line in the file may be of another run.
            if self.shared is not None and (self._current != run_id or self.failed is not None):
                self._current = run_id
                data = encode({"run": run_id}) + data
            self._write(data, keep=not any(isinstance(line, list) for line in lines), run_id=run_id)

    def _write(self, data: bytes, *, keep: bool, run_id: str = "") -> None:
        """Write a piece, after those that are owed. If that fails, `keep` it for the next time, or drop a window."""
        while self._owed and self._write_piece(self._owed[0]):
            del self._owed[0]
        if not self._owed and self._write_piece(self._gaps(self._missing) + data):
            self._missing.clear()
        elif keep:
            self._owed.append(self._gaps([run_id]) + data)  # the record of a run is its last line
            self._missing.pop(run_id, None)
        else:
            self._missing[run_id] = self._missing.get(run_id, 0) + 1

    def _gaps(self, run_ids: Iterable[str]) -> bytes:
        """The lines that say how many windows of these runs were dropped."""
        lines: list[object] = []
        for run_id in run_ids:
            if windows := self._missing.get(run_id):
                lines += [{"run": run_id}] if self.shared is not None else []
                lines.append({"gap": {"windows": windows, "why": self.failed}})
        return b"".join(map(encode, lines))

    def _write_piece(self, data: bytes) -> bool:
        """Write all of it, or none."""
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            self._fail(error)
            if written:
                self._remove_last(written)
            return False
        return True

    def _remove_last(self, count: int) -> None:
        """Remove the beginning of a piece of which the rest could not be written."""
        try:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - count)
        except OSError:
            self._owed.insert(0, b"\n")  # a line that readers skip

    @property
    def is_removed(self) -> bool:
        """Whether the file was removed, so that nothing that is written to it will be read."""
        return os.fstat(self._descriptor).st_nlink == 0

    def sync(self) -> None:
        """Sync the file, so that what was written survives a crash of the machine."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        os.close(self._descriptor)

    def _fail(self, error: OSError) -> None:
        self.failed = self.failed or f"{self.path}: {error.strerror}"


class JournalWriter:
    """Writes one run, to a file of its own or into a `shared` one. No failure is raised: the job goes on."""

    def __init__(self, store: str, run_id: str, shared: RunJournal | None = None) -> None:
        """Create the file. Raises StoreError if the store cannot be written."""
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
        """Write a header that already has the descriptions of the measurements."""
        self._file.begin(self._run_id, header)

    def window(self, seconds: float, samples: int, cells: dict[str, Any], processes: list[Any]) -> None:
        lines: list[Any] = [[round(seconds, 4), samples, *cells.values()]]
        columns = list(cells)
        if columns != self._columns or self.failed is not None:  # the last declaration may be missing
            self._columns = columns
            lines.insert(0, {"columns": columns})
        if processes:
            lines.append({"processes": processes})
        self._file.append(self._run_id, *lines)

    def record(self, record: Record) -> None:
        """Write the record, which is the last line, and sync the file."""
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


def append_to_journal(path: str, *lines: Mapping[str, Any]) -> None:
    """Append lines about a run to its file, from a program that is not its writer. Raises StoreError if that fails."""
    import errno  # late: `run` appends nothing to other runs

    from jobmeter.journal.lock import journal_lock

    try:
        with journal_lock(path, for_appending=True) as file:
            size = os.fstat(file.fileno()).st_size
            torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            data = (b"\n" if torn else b"") + b"".join(map(encode, lines))
            if os.write(file.fileno(), data) < len(data):
                os.ftruncate(file.fileno(), size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def encode(line: Any) -> bytes:
    """A line of a journal: JSON in ASCII."""
    return _encode_fast(line) or json_text(line, separators=(",", ":")).encode() + b"\n"


def _encode_fast(line: Any) -> bytes | None:
    """The same by orjson, for programs that write many lines: it takes a tenth of the time, and 3 ms to import.

    None for what orjson refuses or writes differently: letters beyond ASCII, numbers beyond 64 bits.
    """
    global _lines_until_fast
    if _lines_until_fast > 0:
        _lines_until_fast -= 1
        return None
    if (orjson := _orjson()) is None:
        return None
    try:
        text: bytes = orjson.dumps(line, None, orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return None
    return text if text.isascii() and b"\x7f" not in text else None


@functools.cache
def _orjson() -> ModuleType | None:
    try:
        import orjson
    except ImportError:  # none for this platform
        return None
    return orjson


def journal_path(store: str, run_id: str) -> str:
    return f"{store}/journal/{run_id}.jsonl"
