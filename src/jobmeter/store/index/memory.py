"""Copies an index into memory, for a reader that cannot write to its file."""

from __future__ import annotations

import os
import sqlite3
from urllib.parse import quote

from sqlalchemy import Connection

from jobmeter.store.index.database import index_in_memory, is_regular_file, log_state, raw_connection


def copy_of_connection(source: Connection) -> Connection:
    """A copy of an open index, as it is at this moment. Empty if it cannot be copied."""
    return index_in_memory(raw_connection(source).backup)


def copy_of_file(path: str) -> Connection:
    """A copy of an index file. Empty if there is no file, or if a process is writing to it.

    The file is read without locks, which would need more files in its directory. So that no writer can disturb the
    copy, the log must be empty, and nothing may change while the file is copied.
    """
    before = _state(path)
    if before is None:
        return index_in_memory()
    try:
        source = sqlite3.connect(f"file:{quote(path)}?immutable=1", uri=True)
    except sqlite3.Error:
        return index_in_memory()
    try:
        copy = index_in_memory(source.backup)
    finally:
        source.close()
    if _state(path) == before:
        return copy
    copy.close()
    copy.engine.dispose()
    return index_in_memory()


def _state(path: str) -> tuple[int, ...] | None:
    """Inode, size and times of the file and of its log; None if the file cannot be copied as it is."""
    if not is_regular_file(path):
        return None
    try:
        file = os.stat(path)
    except OSError:
        return None
    log = log_state(path)
    if log is not None and log.st_size:
        return None
    return (file.st_ino, file.st_size, file.st_mtime_ns, log.st_mtime_ns if log is not None else 0)
