"""Prunes runs, or only their windows, from their files: a file is replaced by one without them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import IO, Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from jobmeter.atomic_file import replacing
from jobmeter.errors import StoreError
from jobmeter.journal.lines import parse_line, read_lines
from jobmeter.journal.lock import journal_lock
from jobmeter.journal.reader import begins_with_another, header_id
from jobmeter.links import directory_of, open_directory
from jobmeter.model import Status
from jobmeter.store.index.index import Index, lacks_space
from jobmeter.store.index.rewriting import add_mark, new_mark, remove_mark
from jobmeter.store.index.tables import OPEN, job_metadata, journal_files
from jobmeter.store.index.update import index_again
from jobmeter.store_access import PRIVATE

_WINDOWS = (b"[", b'{"columns"', b'{"processes"')
_TURN = 0.5
"""Seconds of work after which the lock is released for other processes."""
_PAUSE = 0.12
"""Seconds for which the lock is released: a process that waits for it tries again every 0.1 seconds."""
_ABANDONED = 3600.0
"""Seconds without a change after which a temporary file counts as left over from a killed process."""


class Pruned(NamedTuple):
    runs: int
    bytes: int


class _JournalFile(NamedTuple):
    name: str
    path: str
    leaving: set[Any]  # ids of its runs that are selected
    is_wholly_selected: bool


class _Turn(NamedTuple):
    """What was done while the lock was held."""

    runs: int
    bytes: int
    changed: list[str]  # files that were replaced or removed
    rest: list[str]
    failed: list[OSError]
    is_disk_full: bool  # then `rest` begins with the file that could not be replaced


Progress = Callable[[int, int], None]
"""Called with the number of files that are done, and the number of all files."""


def prune(
    index: Index,
    directory: str,
    chosen: ColumnElement[bool],
    warn: Callable[[str], None],
    *,
    keep_summary: bool,
    progress: Progress,
) -> Pruned:
    """Remove the runs chosen, except those that still run; with `keep_summary` only their windows.

    A file is replaced and indexed again in one transaction, so that a reader finds each run either as it was before or
    as it is after. Files that are removed as a whole come first: that frees space, which replacing a file needs.
    Raises StoreError at the end if a file could not be pruned.
    """
    pruning = _Pruning(directory, chosen, keep_summary=keep_summary)
    _remove_abandoned(directory)
    names = pruning.names(index)
    if not names:
        return Pruned(0, 0)
    runs = freed = 0
    total = len(names)
    failed: list[OSError] = []
    mark = new_mark()
    index.change(lambda _: None, lambda connection, _: add_mark(connection, mark))
    while names:
        turn = index.change(
            lambda connection, names=names: pruning.take_turn(connection, names),  # type: ignore[misc]
            lambda connection, turn: index_again(connection, directory, turn.changed, warn),
        )
        runs, freed, names = runs + turn.runs, freed + turn.bytes, turn.rest
        if turn.is_disk_full and index.is_in_file:
            index.leave_file(turn.failed.pop())  # that frees space for the first files
        elif turn.is_disk_full:
            names = names[1:]
        failed += turn.failed
        progress(total - len(names), total)
        if names:
            time.sleep(_PAUSE)
    index.change(lambda _: None, lambda connection, _: remove_mark(connection, mark))
    if failed:
        more = f" ({len(failed) - 1} more files could not be pruned)" if len(failed) > 1 else ""
        raise StoreError(f"{failed[0].filename}: {failed[0].strerror}{more}")
    return Pruned(runs, freed)


def count_prunable(
    index: Index, directory: str, chosen: ColumnElement[bool], *, keep_summary: bool, progress: Progress
) -> Pruned:
    """How many runs `prune` would remove, and how many bytes that would free."""
    pruning = _Pruning(directory, chosen, keep_summary=keep_summary)
    runs = freed = 0
    names = pruning.names(index)
    for done, name in enumerate(names):
        progress(done, len(names))
        file = pruning.file(index.connection, name)
        if file is not None:
            with contextlib.suppress(FileNotFoundError):
                freed += pruning.prunable_bytes(file)
                runs += len(file.leaving)
    return Pruned(runs, freed)


class _Pruning:
    def __init__(self, directory: str, chosen: ColumnElement[bool], *, keep_summary: bool) -> None:
        self._directory = directory
        self._chosen = chosen & (job_metadata.c.status != Status.RUNNING.value)
        self._keep_summary = keep_summary

    def names(self, index: Index) -> list[str]:
        """The names of the files with runs to prune; files that can be removed as a whole come first."""
        file = job_metadata.c.file
        selected: dict[int, int] = dict(index.query(select(file, func.count()).where(self._chosen).group_by(file)))  # type: ignore[arg-type]
        total: dict[int, int] = dict(index.query(select(file, func.count()).group_by(file)))  # type: ignore[arg-type]
        rows = index.query(select(journal_files.c.file, journal_files.c.name))
        files = [row for row in rows if row.file in selected]
        files.sort(key=lambda row: selected[row.file] < total.get(row.file, 0))
        return [row.name for row in files]

    def file(self, connection: Connection, name: str) -> _JournalFile | None:
        """A file as the index has it now; None if it is gone, is still being written, or has no run to prune."""
        job, files = job_metadata.c, journal_files.c
        row = connection.execute(select(files.file, files.is_open).where(files.name == name)).first()
        if row is None or row.is_open == OPEN:
            return None
        leaving = set(connection.execute(select(job.job_id).where(self._chosen & (job.file == row.file))).scalars())
        total = connection.execute(select(func.count()).select_from(job_metadata).where(job.file == row.file)).scalar()
        return _JournalFile(name, f"{self._directory}/{name}", leaving, len(leaving) == total) if leaving else None

    def take_turn(self, connection: Connection, names: list[str]) -> _Turn:
        """Prune files for `_TURN` seconds. A file that cannot be pruned stays as it is; a full disk ends the turn."""
        turn = _Turn(0, 0, [], [], [], is_disk_full=False)
        until = time.monotonic() + _TURN
        for position, name in enumerate(names):
            if position and time.monotonic() > until:
                return turn._replace(rest=names[position:])
            file = self.file(connection, name)
            if file is None:
                continue
            try:
                freed = self._prune(file)
                turn = turn._replace(runs=turn.runs + len(file.leaving), bytes=turn.bytes + freed)
                if freed:
                    turn.changed.append(name)
            except FileNotFoundError:
                turn.changed.append(name)
            except OSError as error:
                error.filename = file.path
                turn.failed.append(error)
                if lacks_space(error):
                    return turn._replace(rest=names[position:], is_disk_full=True)
        return turn

    def prunable_bytes(self, file: _JournalFile) -> int:
        """The number of bytes that pruning the file would free."""
        if self._removes(file):
            return os.lstat(file.path).st_size
        with journal_lock(file.path) as old:
            return _copy_lines(old, None, self._line_filter(file, old))

    def _prune(self, file: _JournalFile) -> int:
        """Prune the file, and return the number of bytes freed."""
        # In a store of another user, a path may lead to another file a moment later.
        with directory_of(file.path) as directory:
            if self._removes(file):
                size = os.lstat(file.path).st_size
                os.unlink(os.path.basename(file.path), dir_fd=directory)
                return size
            with journal_lock(file.path, directory=directory) as old:
                freed = _copy_lines(old, None, self._line_filter(file, old))
                if freed:
                    with replacing(file.path, binary=True, access=PRIVATE, directory=directory) as new:
                        _copy_lines(old, new, self._line_filter(file, old))
                return freed

    def _removes(self, file: _JournalFile) -> bool:
        return not self._keep_summary and file.is_wholly_selected and not begins_with_another(file.path, file.leaving)

    def _line_filter(self, file: _JournalFile, content: IO[bytes]) -> Callable[[bytes], bool]:
        removed = _removed_before(content) | (set() if self._keep_summary else file.leaving)
        return _line_filter(file.leaving, removed)


def _copy_lines(old: IO[bytes], new: IO[bytes] | None, stays: Callable[[bytes], bool]) -> int:
    """Copy the lines that stay to `new`, if it is not None. Returns the size of the other lines in bytes."""
    freed = 0
    staying, is_new = True, True
    old.seek(0)
    for piece in read_lines(old):
        staying = stays(piece) if is_new else staying
        is_new = piece.endswith(b"\n")
        if not staying:
            freed += len(piece)
        elif new is not None:
            new.write(piece)
    return freed


def _remove_abandoned(directory: str) -> None:
    """Remove temporary files that were to become journals, but whose writer was killed."""
    with contextlib.suppress(OSError):
        opened = open_directory(directory)
        try:
            for name in os.listdir(opened):
                if name.startswith(".") and ".jsonl." in name:
                    with contextlib.suppress(OSError):
                        info = os.stat(name, dir_fd=opened, follow_symlinks=False)
                        if time.time() - info.st_mtime > _ABANDONED:
                            os.unlink(name, dir_fd=opened)
        finally:
            os.close(opened)


def _removed_before(content: IO[bytes]) -> set[Any]:
    """The ids of the runs that lines of the file mark as removed."""
    content.seek(0)
    entries = [parse_line(line) for line in read_lines(content) if line.startswith(b'{"removed"')]
    removed = (entry.get("removed") for entry in entries if isinstance(entry, dict))
    return {run_id for run_id in removed if isinstance(run_id, str)}


def _line_filter(stripped: set[Any], removed: set[Any]) -> Callable[[bytes], bool]:
    """A function that decides for each line of a file, in order, whether the line stays.

    Windows of runs in `stripped` and all lines of runs in `removed` do not.
    """
    current: list[Any] = [None]

    def stays(line: bytes) -> bool:
        if line.startswith(_WINDOWS):
            return current[0] not in stripped and current[0] not in removed
        entry = parse_line(line)
        if not isinstance(entry, dict):
            return current[0] not in removed
        if "schema" in entry:
            if "shared" in entry:
                return True
            current[0] = header_id(line, entry)
        elif "labels" in entry or "removed" in entry:
            return str(entry.get("run", entry.get("removed"))) not in removed
        elif "run" in entry:
            current[0] = str(entry["run"])
        return current[0] not in removed

    return stays
