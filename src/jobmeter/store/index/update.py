"""Brings the index up to date with the journals: new files, files that grew, files that were removed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.exc import OperationalError

from jobmeter.errors import StoreError
from jobmeter.garbage import no_collection
from jobmeter.journal.reader import RunLocation, read_journal
from jobmeter.model import Status
from jobmeter.record.validate import check_record
from jobmeter.store.child_process import can_start_children
from jobmeter.store.index.database import Locked, writing
from jobmeter.store.index.liveness import is_elsewhere, writer_lives
from jobmeter.store.index.parallel_scan import (
    WORTH_IT,
    FileToScan,
    ScannedFile,
    scan_in_parallel,
    scanned_file,
)
from jobmeter.store.index.rewriting import marks_left
from jobmeter.store.index.row_batch import RowBatch
from jobmeter.store.index.row_writer import RowWriter, forget_files
from jobmeter.store.index.scan import Scan, ScannedRun, file_size
from jobmeter.store.index.tables import CLOSED, INDEXES, OPEN, SILENT, index_state, job_metadata, journal_files
from jobmeter.store.index.unfinished import record_so_far

_TURN = 2.0
"""Seconds of work after which the lock is released for other processes."""
_SETTLED = 2.0
"""Seconds since a directory's last change after which the next change is sure to give it another time."""
_MANY_BYTES = 8 << 20
_MANY_FILES = 2000
"""If more bytes or files of journals are to be read, it is faster to create the SQL indexes after the rows."""
_YOUNG = 3600.0
"""Seconds for which a new file without a header may still get one."""


class _IndexedFile(NamedTuple):
    """A journal file as the index has it."""

    file: int
    name: str
    size: int
    mtime_ns: int
    is_open: int
    read_to: int
    lines: int
    writer: str


class _Plan(NamedTuple):
    """The work to do."""

    changed: list[str]
    gone: list[str]
    directory: str | None  # the directory's time of change, to be stored when all is done; None: unchanged
    left: Sequence[str] = ()  # marks of processes that were killed while they replaced files


def bring_up_to_date(
    connection: Connection,
    directory: str,
    warn: Callable[[str], None],
    *,
    patient: bool = False,
    on_wait: Callable[[], None] = lambda: None,
) -> None:
    """Bring the index up to date with the journals in `directory`. A journal that cannot be read never hides others.

    Raises Locked if another process holds the lock for too long; what was indexed until then stays. `patient` and
    `on_wait` are those of `writing`.
    """
    updating = _Updating(connection, directory, warn)
    plan = updating.plan()
    try:
        while plan is not None:
            with writing(connection, patient=patient, on_wait=on_wait):
                rest = updating.work(plan)
            plan = rest
    except (Locked, OperationalError):
        if plan is None or plan.changed or plan.gone or plan.left:
            raise
        # Only the time of the directory was to be stored: the index is complete without it.


def index_again(connection: Connection, directory: str, names: Sequence[str], warn: Callable[[str], None]) -> None:
    """Within a transaction: remove the runs of these files from the index, and read the files that still exist."""
    _Updating(connection, directory, warn).read_again(names)


class _Updating:
    def __init__(self, connection: Connection, directory: str, warn: Callable[[str], None]) -> None:
        self._connection = connection
        self._directory = directory
        self._warn = warn
        self._rows: RowWriter
        self._next_file = 0
        # As text: there may be a million files, and composing a statement takes longer than reading a file.
        self._select_file = str(select(journal_files).where(journal_files.c.name == "").compile(connection.engine))
        self._insert_file = str(insert(journal_files).prefix_with("OR REPLACE").compile(connection.engine))

    def plan(self) -> _Plan | None:
        """The work to do; None if there is none."""
        mtime = self._directory_mtime()
        state = {row.name: row.value for row in self._connection.execute(select(index_state))}
        left = marks_left(state)
        changed = [file.name for file in (self._all_files() if left else self._open_files()) if self._is_changed(file)]
        if state.get("directory") == str(mtime) and not left:
            return _Plan(changed, [], None) if changed else None
        names = self._names() if mtime else set()
        indexed_names = set(self._connection.execute(select(journal_files.c.name)).scalars())
        changed = [name for name in changed if name in names] + sorted(names - indexed_names)
        gone = [name for name in indexed_names - names if not self._exists(name)]
        settled = time.time() - mtime / 1e9 > _SETTLED
        if not changed and not gone and not settled and not left:
            return None
        return _Plan(changed, gone, str(mtime) if settled else "", left)

    def work(self, plan: _Plan) -> _Plan | None:
        """Within a transaction: do as much as fits into one turn. Returns the rest, or None if all is done.

        What another process has done since the plan was made is skipped.
        """
        # By name: if another process removed a file since the plan was made, its number may be that of another file.
        forget_files(self._connection, self._numbers(name for name in plan.gone if not self._exists(name)))
        if self._is_much(plan):
            self._drop_indexes()
        self._begin()
        if self._is_worth_processes(plan):
            self._read_in_parallel(plan.changed, anew=bool(plan.left))
        else:
            until = time.monotonic() + _TURN
            for done, name in enumerate(plan.changed, start=1):
                self._read(name, anew=bool(plan.left))
                if time.monotonic() > until and done < len(plan.changed):
                    self._rows.flush()
                    return plan._replace(changed=plan.changed[done:], gone=[])
        self._rows.flush()
        for index in INDEXES:
            index.create(self._connection, checkfirst=True)
        if plan.directory is not None:
            self._connection.execute(
                insert(index_state).prefix_with("OR REPLACE"), {"name": "directory", "value": plan.directory}
            )
        self._connection.execute(delete(index_state).where(index_state.c.name.in_(plan.left)))
        return None

    def read_again(self, names: Sequence[str]) -> None:
        """Remove the runs of these files from the index, and read the files that still exist."""
        forget_files(self._connection, self._numbers(names))
        self._begin()
        for name in names:
            self._read(name)
        self._rows.flush()

    def _begin(self) -> None:
        self._rows = RowWriter(self._connection, self._warn)
        self._next_file = (self._connection.execute(select(func.max(journal_files.c.file))).scalar() or 0) + 1

    def _numbers(self, names: Iterable[str]) -> list[int]:
        rows = (self._connection.exec_driver_sql(self._select_file, (name,)).first() for name in names)
        return [row.file for row in rows if row is not None]

    def _exists(self, name: str) -> bool:
        """Whether a file exists: listing a directory can miss a file that is replaced at the same time."""
        return os.path.lexists(f"{self._directory}/{name}")

    def _directory_mtime(self) -> int:
        try:
            return os.stat(self._directory).st_mtime_ns
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StoreError(f"{self._directory}: {error.strerror}") from None

    def _names(self) -> set[str]:
        try:
            with os.scandir(self._directory) as entries:
                names = {entry.name for entry in entries if entry.name.endswith(".jsonl")}
        except OSError as error:
            raise StoreError(f"{self._directory}: {error.strerror}") from None
        unusable = {name for name in names if not _is_utf8(name)}
        for name in sorted(unusable):
            self._warn(f"{self._directory}/{name}: is left out, because its name is not UTF-8")
        return names - unusable

    def _all_files(self) -> list[_IndexedFile]:
        return [_IndexedFile(*row) for row in self._connection.execute(select(journal_files))]

    def _open_files(self) -> list[_IndexedFile]:
        rows = self._connection.execute(select(journal_files).where(journal_files.c.is_open > CLOSED))
        return [_IndexedFile(*row) for row in rows]

    def _is_changed(self, file: _IndexedFile) -> bool:
        try:
            size, mtime_ns = file_size(f"{self._directory}/{file.name}")
        except OSError:
            return False  # removed: the time of the directory shows that
        if (size, mtime_ns) != (file.size, file.mtime_ns):
            return True
        return file.is_open == OPEN and not writer_lives(json.loads(file.writer), mtime_ns / 1e9)

    def _is_much(self, plan: _Plan) -> bool:
        if len(plan.changed) > _MANY_FILES:
            return True
        if self._connection.execute(select(job_metadata.c.number).limit(1)).first() is not None:
            return False
        paths = (f"{self._directory}/{name}" for name in plan.changed)
        return sum(map(_size, paths)) > _MANY_BYTES

    def _is_worth_processes(self, plan: _Plan) -> bool:
        paths = [f"{self._directory}/{name}" for name in plan.changed]
        if len(paths) < 2 or len(paths) > _MANY_FILES:
            return False
        return can_start_children() and sum(map(_size, paths)) > WORTH_IT

    def _drop_indexes(self) -> None:
        for index in INDEXES:
            if not index.unique:
                index.drop(self._connection, checkfirst=True)

    def _read(self, name: str, *, anew: bool = False) -> None:
        """Read what is new in a file, or all of it if `anew`. Warn if it cannot be read, and do not try again."""
        path = f"{self._directory}/{name}"
        try:
            size, mtime_ns = file_size(path)
        except FileNotFoundError:
            return  # removed since it was listed
        except OSError as error:
            self._warn(f"{path}: {error.strerror}")
            return
        before = self._file_before(name, size, anew=anew)
        scan = Scan(path, before.read_to, before.lines, self._warn)
        unfinished: list[ScannedRun] = []
        messages: list[str] = []
        try:
            for run in scan.runs():
                if run.record is None:
                    unfinished.append(run)
                else:
                    self._rows.add(run, run.record, before.file)
        except StoreError as error:
            messages.append(str(error))
        scanned = scanned_file(scan, name, unfinished, messages)
        self._finish(before._replace(mtime_ns=mtime_ns), scanned)

    def _read_in_parallel(self, names: list[str], *, anew: bool) -> None:
        """Read many large files, several at once."""
        files_before: dict[str, _IndexedFile] = {}
        for name in names:
            try:
                size, mtime_ns = file_size(f"{self._directory}/{name}")
            except FileNotFoundError:
                continue
            except OSError as error:
                self._warn(f"{self._directory}/{name}: {error.strerror}")
                continue
            files_before[name] = self._file_before(name, size, anew=anew)._replace(mtime_ns=mtime_ns)
        files = [
            FileToScan(name, f"{self._directory}/{name}", file.file, file.read_to, file.lines)
            for name, file in files_before.items()
        ]
        with no_collection():  # of many rows, here and in the children, for a twentieth of the time
            for message in scan_in_parallel(files):
                if isinstance(message, RowBatch):
                    self._rows.write(message)
                else:
                    self._finish(files_before[message.name], message)

    def _finish(self, before: _IndexedFile, scanned: ScannedFile) -> None:
        """Store how far a file was read, and decide the status of runs in it that have no end."""
        is_open, writer = CLOSED, "{}"
        for message in scanned.messages:
            self._warn(message)
        try:
            if scanned.unfinished or scanned.torn or scanned.shared or not scanned.size:
                is_open, writer = self._judge(scanned, before.file)
        except StoreError as error:
            self._warn(str(error))
        except OSError as error:  # the file was removed
            self._warn(f"{scanned.path}: {error.strerror}")
        self._rows.amend(scanned.amendments, before.file)
        read_to, lines = scanned.resume_at
        after = before._replace(size=scanned.size, is_open=is_open, read_to=read_to, lines=lines, writer=writer)
        self._connection.exec_driver_sql(self._insert_file, tuple(after))

    def _file_before(self, name: str, size: int, *, anew: bool) -> _IndexedFile:
        """The index's entry of a file; a new one for a new file, if `anew`, or if the file shrank: it was replaced."""
        row = self._connection.exec_driver_sql(self._select_file, (name,)).first()
        if row is not None and size >= row.size and not anew:
            return _IndexedFile(*row)
        if row is not None:
            self._rows.flush()
            forget_files(self._connection, [row.file])
        self._rows.file_names[self._next_file] = name
        self._next_file += 1
        return _IndexedFile(self._next_file - 1, name, 0, 0, CLOSED, 0, 0, "{}")

    def _judge(self, scan: ScannedFile, file: int) -> tuple[int, str]:
        """Index the unfinished runs of a file. Returns CLOSED, OPEN or SILENT for the file, and its writer as JSON."""
        state_of_file = CLOSED
        writer: Mapping[str, Any] = scan.shared
        for run in scan.unfinished:
            try:
                journal = read_journal(scan.path, RunLocation(run.run_id, run.offset, run.line))
            except StoreError as error:
                self._warn(str(error))
                continue
            state = _state(journal.header, scan)
            record = record_so_far(journal, Status.RUNNING if state == OPEN else Status.LOST)
            problem = check_record(record)
            if problem is None:
                self._rows.add(run, record, file)
            else:
                reason = journal.problems[0] if journal.problems else f"{scan.path}: line {run.line}: run{problem}"
                self._warn(f"{reason}; run {run.run_id} is left out")
            if state != CLOSED and state_of_file != OPEN:
                state_of_file, writer = state, journal.header
        if state_of_file == CLOSED and scan.shared:
            state_of_file = _state(scan.shared, scan)
        if state_of_file == CLOSED and not scan.unfinished and not scan.lines:
            young = time.time() - file_size(scan.path)[1] / 1e9 < _YOUNG
            state_of_file = SILENT if young else CLOSED
        if state_of_file == CLOSED and scan.torn:
            self._warn(scan.torn)
        return state_of_file, json.dumps({key: writer[key] for key in ("writer", "host") if key in writer})


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0  # the file was removed


def _is_utf8(name: str) -> bool:
    return name.isascii() or name.encode("utf-8", "replace").decode() == name


def _state(header: Mapping[str, Any], scan: ScannedFile) -> int:
    size, mtime_ns = file_size(scan.path)
    if writer_lives(header, mtime_ns / 1e9):
        return OPEN
    if is_elsewhere(header):
        return SILENT
    # The writer may have written its last line after we read the file, and then ended.
    return OPEN if file_size(scan.path)[0] != scan.size or size != scan.size else CLOSED
