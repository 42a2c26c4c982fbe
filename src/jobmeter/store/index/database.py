"""The index's database: opened, checked, and rebuilt when it cannot be used."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, create_engine, event, insert, select
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import StaticPool

from jobmeter.errors import StoreError
from jobmeter.store.index.tables import SAMPLES_VIEW, SCHEMA_VERSION, index_state, job_metadata, layout, metadata

_BUSY_SECONDS = 10.0
"""How long to wait for another command that brings the index up to date."""
_MAPPED = 1 << 31
"""Bytes of the index that are read through memory: a quarter faster. Not while it is filled."""


class Locked(Exception):
    """Another process holds the lock of the index for too long."""


def open_index(path: str) -> Connection:
    """The index in this file; created if missing, rebuilt if it is damaged, of an older version or another layout.

    StoreError when it is of a newer version, or cannot be opened.
    """
    with _alone(f"{path}.lock"):
        try:
            return _open_checked(path)
        except (DatabaseError, _Damaged) as error:
            if isinstance(error, OperationalError) and "locked" in str(error):
                raise StoreError(f"{path}: another program holds its lock. Try again.") from None
            discard_index(path)
        try:
            return _open_checked(path)
        except DatabaseError as error:
            raise StoreError(f"{path}: {error.orig}") from None


def index_in_memory() -> Connection:
    """An index for a store that cannot be written to."""
    return _open_checked(":memory:")


def discard_index(path: str) -> None:
    for name in (f"{path}-wal", f"{path}-shm", path):
        remove_file(name)


def remove_file(path: str) -> None:
    """Remove a file, if it exists; StoreError when that fails."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{path}: cannot be removed: {error.strerror}") from None


def _tidy_log(connection: Connection) -> None:
    """Move what was written into the file itself, unless other processes are reading; then the next command does."""
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(_BUSY_SECONDS * 1000)}")


def read_through_memory(connection: Connection) -> None:
    connection.exec_driver_sql(f"PRAGMA mmap_size = {_MAPPED}")


@contextlib.contextmanager
def writing(connection: Connection) -> Iterator[None]:
    """One transaction; `Locked` when another process holds the lock."""
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise Locked from None
        raise
    try:
        yield
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")
    _tidy_log(connection)


class _Damaged(Exception):
    """The file is not a usable index."""


def _open_checked(path: str) -> Connection:
    if path != ":memory:":
        _check_size(path)
    connection = _connect(path)
    try:
        _check_version(connection, path)
        connection.execute(select(job_metadata).limit(1)).all()
    except BaseException:
        connection.close()
        connection.engine.dispose()
        raise
    return connection


def _connect(path: str) -> Connection:
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=StaticPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(raw: Any, _: Any) -> None:
        cursor: sqlite3.Cursor = raw.cursor()
        # With a write-ahead log readers never wait for the writer, nor the writer for them.
        cursor.execute("PRAGMA page_size = 16384")  # rows are of half a kilobyte, and often read one after another
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA cache_size = -65536")
        cursor.execute("PRAGMA threads = 4")  # they sort, when indexes are made
        cursor.close()

    return engine.connect()


def _check_version(connection: Connection, path: str) -> None:
    tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()
    if not tables:
        with writing(connection):
            metadata.create_all(connection)
            connection.exec_driver_sql(SAMPLES_VIEW)
            made = {"schema": str(SCHEMA_VERSION), "layout": layout()}
            rows = [{"name": name, "value": value} for name, value in made.items()]
            connection.execute(insert(index_state).prefix_with("OR REPLACE"), rows)
        return
    state = {row.name: row.value for row in connection.execute(select(index_state))}
    schema = state.get("schema")
    version = int(schema) if isinstance(schema, str) and schema.isdigit() else 0
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: written by format {version}, this version reads up to {SCHEMA_VERSION}. Upgrade jobmeter."
        )
    if version < SCHEMA_VERSION or state.get("layout") != layout():
        raise _Damaged


def _check_size(path: str) -> None:
    """Whether the file is shorter than its header says: SQLite notices only when it reads a missing page."""
    log = os.path.getsize(f"{path}-wal") if os.path.exists(f"{path}-wal") else 0
    try:
        with open(path, "rb") as file:
            head = file.read(100)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        if log:
            raise _Damaged from None  # the log of another database, which SQLite would apply to ours
        return
    except OSError:
        return  # opening it will report the reason
    if not size:
        raise _Damaged
    if log:
        return  # pages that are missing may be in there
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    if size < (65536 if page == 1 else page) * pages:
        raise _Damaged


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold a lock while the index is opened: rebuilding it removes files."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
