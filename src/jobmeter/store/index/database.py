"""Opens the database of the index, checks it, and rebuilds it if it cannot be used."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

from sqlalchemy import Connection, create_engine, event, insert, select
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from jobmeter.errors import StoreError
from jobmeter.links import directory_of
from jobmeter.store.index.tables import SAMPLES_VIEW, SCHEMA_VERSION, index_state, job_metadata, layout, metadata
from jobmeter.store_access import create, open_or_create, store_access

_BUSY_SECONDS = 10.0
"""How long to wait for another command that brings the index up to date."""
_PATIENT_SECONDS = 60.0
"""How long a command that changes runs waits: it cannot change them without the lock."""
_SILENT_SECONDS = 2.0
"""How long a command waits before it reports that it waits."""
_MAPPED = 1 << 31
"""Bytes of the index that are memory-mapped, which makes reading a quarter faster. Not while it is filled."""
_SMALL_PAGES = 64
"""One megabyte. An index with fewer pages need not shrink."""
_NOT_DAMAGE = (
    "disk is full",
    "disk I/O error",
    "unable to open database file",
    "readonly database",
    "permission denied",
    "locked",
    "locking protocol",
)
"""Messages of SQLite if the disk, a permission or a lock is the reason: rebuilding the index would not help."""


class Locked(Exception):
    """Another process holds the lock of the index for too long."""


class Unusable(Exception):
    """The index file cannot be opened or written, or is of a newer version: a new file would not help."""


def is_damage(error: DatabaseError) -> bool:
    """Whether the index itself is the reason of an error, so that a new index helps."""
    return not any(words in str(error.orig) for words in _NOT_DAMAGE)


def open_index(path: str) -> Connection:
    """The index in this file; created if missing, rebuilt if it is damaged, of an older version or another layout.

    Raises Unusable if it is of a newer version, or cannot be opened or written.
    """
    if os.path.lexists(path) and not is_regular_file(path):
        # SQLite would follow a symbolic link and change the database at its end, and wait for the writer of a FIFO.
        raise Unusable("it is not a regular file")
    with _alone(f"{path}.lock"):
        try:
            return _open_checked(path)
        except (_Damaged, UnicodeDecodeError):  # a message of SQLite quotes the file, which may contain any bytes
            pass
        except DatabaseError as error:
            if not is_damage(error):
                raise Unusable(str(error.orig)) from None
        try:
            discard_index(path)
            return _open_checked(path)
        except (DatabaseError, StoreError) as error:
            raise Unusable(str(error.orig if isinstance(error, DatabaseError) else error)) from None


def index_in_memory(fill: Callable[[sqlite3.Connection], None] | None = None) -> Connection:
    """An index in memory, for a store that cannot be written to. Empty without `fill`, or if `fill` fails."""
    if fill is not None:
        with contextlib.suppress(DatabaseError, sqlite3.Error, StoreError, Unusable, UnicodeDecodeError, _Damaged):
            return _open_checked(":memory:", fill)
    return _open_checked(":memory:")


def discard_index(path: str) -> None:
    for name in (f"{path}-wal", f"{path}-shm", f"{path}-journal", path):
        remove_file(name)


def is_regular_file(path: str) -> bool:
    """Whether it exists and is a file: no directory, no FIFO, no symbolic link."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def log_state(path: str) -> os.stat_result | None:
    """The state of the write-ahead log of this index; None if it has none. The last process to close it removes it."""
    try:
        return os.stat(f"{path}-wal")
    except OSError:
        return None


def remove_file(path: str) -> None:
    """Remove a file, if it exists. Raises StoreError if that fails."""
    try:
        with directory_of(path) as directory:
            os.unlink(os.path.basename(path), dir_fd=directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{path}: cannot be removed: {error.strerror}") from None


def _tidy_log(connection: Connection) -> None:
    """Move the write-ahead log into the database file. If other processes are reading, a later command does that."""
    _wait_for_locks(connection, 0)
    with contextlib.suppress(OperationalError):  # no space for it: what was written stays in the log
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    _wait_for_locks(connection, _BUSY_SECONDS)


def shrink(connection: Connection) -> None:
    """Shrink the file if a quarter of it or more is unused: shrinking then takes no longer than the removal did.

    For a while, it needs as much free space as the content that stays. Without that space, or while other processes
    write, the file stays as it is.
    """
    pages, unused = (
        connection.exec_driver_sql(f"PRAGMA {of}").scalar() or 0 for of in ("page_count", "freelist_count")
    )
    if pages < _SMALL_PAGES or unused * 4 < pages:
        return
    with contextlib.suppress(DatabaseError):
        connection.exec_driver_sql("VACUUM")
        _tidy_log(connection)


def _wait_for_locks(connection: Connection, seconds: float) -> None:
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


def raw_connection(connection: Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def read_through_memory(connection: Connection) -> None:
    connection.exec_driver_sql(f"PRAGMA mmap_size = {_MAPPED}")


@contextlib.contextmanager
def writing(
    connection: Connection, *, patient: bool = False, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Run the block in one transaction. `on_wait` is called if the wait for the lock gets long.

    Raises Locked if another process holds the lock for too long.
    """
    seconds = _PATIENT_SECONDS if patient else _BUSY_SECONDS
    silent = min(_SILENT_SECONDS, seconds)
    try:
        try:
            _begin(connection, silent)
        except Locked:
            if seconds == silent:
                raise
            on_wait()
            _begin(connection, seconds - silent)
    finally:
        _wait_for_locks(connection, _BUSY_SECONDS)
    try:
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with contextlib.suppress(SQLAlchemyError):  # SQLite itself rolls back when the disk is full
            connection.exec_driver_sql("ROLLBACK")
        raise
    _tidy_log(connection)


def _begin(connection: Connection, seconds: float) -> None:
    """Begin a transaction. Raises Locked if another process holds the lock for this many seconds."""
    _wait_for_locks(connection, seconds)
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise Locked from None
        raise


class _Damaged(Exception):
    """The file is not a usable index."""


def _open_checked(path: str, fill: Callable[[sqlite3.Connection], None] | None = None) -> Connection:
    if path != ":memory:":
        _check_links(path)
        _check_size(path)
        _create_file(path)
    connection = _connect(path)
    try:
        if fill is not None:
            fill(raw_connection(connection))
        _check_version(connection)
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
        cursor.execute("PRAGMA threads = 4")  # to sort, when SQL indexes are created
        cursor.close()

    return engine.connect()


def _check_version(connection: Connection) -> None:
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
    version = int(schema) if isinstance(schema, str) and schema.isdecimal() and len(schema) < 10 else 0
    if version > SCHEMA_VERSION:
        # The file stays: the newer version, which may be in use too, need not rebuild it.
        raise Unusable(f"written by format {version}, this version of jobmeter reads up to {SCHEMA_VERSION}")
    if version < SCHEMA_VERSION or state.get("layout") != layout():
        raise _Damaged


def _check_links(path: str) -> None:
    """Raise _Damaged if a file of the index is a symbolic link; rebuilding the index removes the link.

    SQLite would follow it, and write to the database that it points to.
    """
    if any(os.path.islink(name) for name in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal")):
        raise _Damaged


def _create_file(path: str) -> None:
    """Create the file with the permissions of the store. SQLite would use the umask; its logs get those of the file."""
    try:
        os.close(create(path, store_access(os.path.dirname(path))))
    except FileExistsError:
        pass
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None


def _check_size(path: str) -> None:
    """Raise _Damaged if the file is shorter than its header says: SQLite notices only when it reads a missing page."""
    state = log_state(path)
    log = 0 if state is None else state.st_size
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
        return  # the log may contain the missing pages
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    if size < (65536 if page == 1 else page) * pages:
        raise _Damaged


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold a lock while the index is opened, because rebuilding it removes files. Raises Unusable without the lock."""
    import fcntl

    try:
        descriptor = open_or_create(path, store_access(os.path.dirname(path)), os.O_RDWR)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    try:
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unusable("another program holds its lock") from None
                time.sleep(0.005)
                continue
            except OSError:
                pass  # a file system without locks
            break
        yield
    finally:
        os.close(descriptor)
