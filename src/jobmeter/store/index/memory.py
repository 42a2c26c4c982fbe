"""Copies an index into memory, for a reader that cannot write to its file."""

from __future__ import annotations

import os
import sqlite3
from urllib.parse import quote

from sqlalchemy import Connection

from jobmeter.store.index.database import index_in_memory, is_regular_file, raw_connection


def copy_of_connection(source: Connection) -> Connection:
    """What the open index holds at this moment. Empty when it cannot be copied."""
    return index_in_memory(raw_connection(source).backup)


def copy_of_file(path: str) -> Connection:
    """What is in the file of an index that nobody is writing to; empty when there is no such file.

    The file is read without locks, which need files beside it. So that a writer cannot disturb the copy, its log must
    be empty and nothing may change meanwhile.
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
    """Sizes and times of the file and of its log; None when it cannot be copied as it is."""
    if not is_regular_file(path):
        return None
    try:
        file = os.stat(path)
        log = os.stat(f"{path}-wal") if os.path.exists(f"{path}-wal") else None
    except OSError:
        return None
    if log is not None and log.st_size:
        return None
    return (file.st_ino, file.st_size, file.st_mtime_ns, log.st_mtime_ns if log is not None else 0)
