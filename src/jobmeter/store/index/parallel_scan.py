"""Scans many journal files at once, each in a child process.

Making an index of a million runs takes two thirds of its time to read them. A child
scans a file and sends rows in batches; a pipe holds few batches, so memory stays bounded.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.errors import StoreError
from jobmeter.store.child_process import begin_child, start_child, widen
from jobmeter.store.index.extract import row_of
from jobmeter.store.index.row_batch import RowBatch, RowCollector
from jobmeter.store.index.scan import Amendment, Scan, ScannedRun

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_ROWS = b"r"
"""The first byte of a message with rows: plain values, for which marshal takes half the time of pickle."""
WORTH_IT = 64 << 20
"""Bytes of journals above which starting child processes saves time."""


class FileToScan(NamedTuple):
    """A file, and where to begin in it."""

    name: str
    path: str
    file: int
    read_to: int
    lines: int


class ScannedFile(NamedTuple):
    """What the index needs to know of a file; sent after all runs of the file."""

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


def scan_in_parallel(files: Sequence[FileToScan]) -> Iterator[RowBatch | ScannedFile]:
    """Yield the runs of the files as they are read, and after the runs of each file its `ScannedFile`."""
    # Late: every command that reads imports this module, and few read so much.
    from multiprocessing.connection import Connection, Pipe, wait

    waiting = list(reversed(files))
    scanning: dict[Connection, Any] = {}
    try:
        while waiting or scanning:
            while waiting and len(scanning) < (os.cpu_count() or 1):
                here, there = Pipe(duplex=False)
                widen(there)
                process = start_child(_serve, ([here, *scanning], there, waiting.pop()))
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
            process.kill()


def _receive(connection: Connection) -> RowBatch | ScannedFile:
    try:
        packed = connection.recv_bytes()
    except EOFError:
        raise StoreError("a process that read journals was killed. Try again.") from None
    if packed.startswith(_ROWS):
        return RowBatch(*marshal.loads(memoryview(packed)[1:]))
    scanned: ScannedFile = pickle.loads(packed)
    return scanned


def _serve(parent: int, inherited: Sequence[Connection], connection: Connection, file: FileToScan) -> None:
    """In the child: scan a file."""
    begin_child(parent, inherited)
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        _scan(connection, file)


def _scan(connection: Connection, file: FileToScan) -> None:
    """Send the runs of the file, then its `ScannedFile`."""
    messages: list[str] = []
    unfinished: list[ScannedRun] = []
    rows = RowCollector()
    scan = Scan(file.path, file.read_to, file.lines, messages.append)
    try:
        for run in scan.runs():
            if run.record is None:
                unfinished.append(run)
                continue
            rows.add(row_of(run.record, file.file, run.offset, run.line), run.samples)
            if rows.is_full:
                _send_rows(connection, rows)
    except StoreError as error:
        messages.append(str(error))
    _send_rows(connection, rows)
    connection.send_bytes(pickle.dumps(scanned_file(scan, file.name, unfinished, messages)))


def _send_rows(connection: Connection, rows: RowCollector) -> None:
    batch = rows.take()
    connection.send_bytes(_ROWS + marshal.dumps((batch.size, batch.columns, batch.samples)))


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
