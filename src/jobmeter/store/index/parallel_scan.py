"""Scans many journal files at once, each in a process of its own.

To make an index of a million runs takes two thirds of its time to read them. A child
scans a file and hands over rows in batches; a pipe holds few of them, so memory stays bounded.
"""

from __future__ import annotations

import contextlib
import fcntl
import marshal
import os
import pickle
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.store.index.extract import row_of
from jobmeter.store.index.scan import Amendment, Scan, ScannedRun

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_ROWS = b"r"
"""Begins a message of rows: plain tuples, for which marshal takes half the time of pickle."""
_BATCH = 500
"""Runs that are handed over at once."""
_AHEAD = 1 << 20
WORTH_IT = 64 << 20
"""Bytes of journals from which on a process more is worth its start."""


class FileToScan(NamedTuple):
    """A file, and where to begin in it."""

    name: str
    path: str
    file: int
    read_to: int
    lines: int


class RowBatch(NamedTuple):
    """Runs that ended, as rows of the index with their samples."""

    runs: list[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]


class ScannedFile(NamedTuple):
    """A file whose runs were all handed over: what the index needs to know of it."""

    name: str
    path: str
    shared: dict[str, Any]
    amendments: list[Amendment]
    size: int
    lines: int
    torn: str | None
    resume_at: tuple[int, int]
    unfinished: list[ScannedRun]
    messages: list[str]


def can_scan_in_parallel() -> bool:
    """Whether there are CPUs for it, and this process can be forked safely: not if it has threads."""
    return (os.cpu_count() or 1) > 1 and hasattr(os, "fork") and threading.active_count() == 1


def scan_in_parallel(files: Sequence[FileToScan]) -> Iterator[RowBatch | ScannedFile]:
    """What is in the files, as it is read; of each file `ScannedFile` last."""
    import multiprocessing  # late: every command that reads imports this module, and few read so much
    from multiprocessing.connection import Connection, wait

    context = multiprocessing.get_context("fork")
    waiting = list(reversed(files))
    scanning: dict[Connection, Any] = {}
    try:
        while waiting or scanning:
            while waiting and len(scanning) < (os.cpu_count() or 1):
                here, there = context.Pipe(duplex=False)
                _widen(there)
                process = context.Process(target=_scan, args=(there, waiting.pop()), daemon=True)
                process.start()
                there.close()
                scanning[here] = process
            for connection in wait(list(scanning)):
                assert isinstance(connection, Connection)
                message = _receive(connection)
                if isinstance(message, ScannedFile):
                    scanning.pop(connection).join()
                    connection.close()
                yield message
    finally:
        for process in scanning.values():
            process.terminate()


def _widen(pipe: Connection) -> None:
    """Let a child be some batches ahead while rows are written."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # more than this user may have
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _AHEAD)


def _receive(connection: Connection) -> RowBatch | ScannedFile:
    try:
        packed = connection.recv_bytes()
    except EOFError:
        raise StoreError("a process that read journals was killed. Try again.") from None
    if packed.startswith(_ROWS):
        return RowBatch(marshal.loads(memoryview(packed)[1:]))
    scanned: ScannedFile = pickle.loads(packed)
    return scanned


def _scan(connection: Connection, file: FileToScan) -> None:
    """In the child: hand over what the file holds."""
    messages: list[str] = []
    unfinished: list[ScannedRun] = []
    batch: list[tuple[tuple[Any, ...], list[tuple[Any, ...]]]] = []
    scan = Scan(file.path, file.read_to, file.lines, messages.append)
    try:
        for run in scan.runs():
            row = _row(run, file.file)
            if row is None:
                unfinished.append(run)
                continue
            batch.append((row, list(map(tuple, run.samples))))
            if len(batch) >= _BATCH:
                connection.send_bytes(_ROWS + marshal.dumps(batch))
                batch = []
    except StoreError as error:
        messages.append(str(error))
    connection.send_bytes(_ROWS + marshal.dumps(batch))
    connection.send_bytes(pickle.dumps(scanned_file(scan, file.name, unfinished, messages)))


def scanned_file(scan: Scan, name: str, unfinished: list[ScannedRun], messages: list[str]) -> ScannedFile:
    """What the index needs to know of a file that was scanned to its end."""
    return ScannedFile(
        name,
        scan.path,
        scan.shared,
        scan.amendments,
        scan.size,
        scan.lines,
        scan.torn,
        scan.resume_at(),
        unfinished,
        messages,
    )


def _row(run: ScannedRun, file: int) -> tuple[Any, ...] | None:
    try:
        return None if run.record is None else row_of(run.record, file, run.offset, run.line)
    except (KeyError, TypeError, AttributeError):
        return None  # reported when unfinished runs are read
