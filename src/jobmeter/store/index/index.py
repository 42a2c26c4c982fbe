"""The index of a store: in its file, or in memory while that file cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard, TypeVar

from sqlalchemy import Connection, Row, Select
from sqlalchemy.exc import DatabaseError

from jobmeter.errors import StoreError
from jobmeter.store.index.database import (
    Locked,
    Unusable,
    discard_index,
    index_in_memory,
    is_damage,
    is_regular_file,
    open_index,
    read_through_memory,
    shrink,
    writing,
)
from jobmeter.store.index.memory import copy_of_connection, copy_of_file
from jobmeter.store.index.update import bring_up_to_date
from jobmeter.store_access import may_keep_index

_ATTEMPTS = 4
"""One each with the file, a new file, a copy in memory, and an empty index in memory."""
_LOCKED = "another program holds its lock"

T = TypeVar("T")

_read_files: set[str] = set()
"""Index files from which this process has answered queries."""


def discard_read_files() -> list[str]:
    """Remove the index files that this process has used, so that the next answer is made from the journals alone.

    For an index with values that jobmeter never writes, which is noticed only when they are used: another program or
    the disk changed the file.
    """
    discarded = []
    for path in sorted(_read_files):
        with contextlib.suppress(StoreError):
            discard_index(path)
            discarded.append(path)
    _read_files.clear()
    return discarded


def lacks_space(error: BaseException | None) -> TypeGuard[OSError]:
    """Whether a file could not be written because the disk is full, or the quota of the user is used up."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class Index:
    """Answers queries, whatever happens to its file: it can always be made again from the journals."""

    def __init__(self, path: str, directory: str, warn: Callable[[str], None]) -> None:
        self.path = path
        self.connection: Connection
        self._directory = directory
        self._warn = warn
        self._is_current = False
        self._streams = 0
        self._reported_wait = False
        self._file: Connection | None = None  # the connection to the file, also while another program holds its lock
        self._open()

    def close(self) -> None:
        """Close the files of the index. It cannot be used after that."""
        for connection in (self.connection, self._file):
            if connection is not None:
                _close(connection)  # closing the same connection again does nothing

    def update(self) -> None:
        """Bring the index up to date with the journals."""
        self._is_current = False
        self._attempt(lambda: None)

    def query(self, statement: Select[Any]) -> list[Row[Any]]:
        """All rows of the answer."""
        return self._attempt(lambda: list(self.connection.execute(statement).all()))

    def stream(self, statement: Select[Any]) -> Iterator[Row[Any]]:
        """The rows of the answer one by one, all as they were when the first was read. Raises StoreError on damage."""
        begun = False
        self._streams += 1
        try:
            for row in self.connection.execution_options(yield_per=500).execute(statement):
                begun = True
                yield row
            return
        except DatabaseError as error:
            self._replace(error)
            if begun:
                raise StoreError(f"{self.path} was damaged and is made again. Run the command again.") from None
        finally:
            self._streams -= 1
        yield from self.query(statement)

    def change(self, edit_files: Callable[[Connection], T], edit_index: Callable[[Connection, T], None]) -> T:
        """Change journals and then the index, in one transaction: readers see none of the changes, or all of them.

        If the index cannot be written, for example on a full disk, its file is removed, and the next reader makes it
        again. Raises StoreError if another program holds the lock.
        """
        for _ in range(_ATTEMPTS):
            changes: list[T] = []
            try:
                self._prepare_change()
                with writing(self.connection, patient=True, on_wait=self._report_wait):
                    changes.append(edit_files(self.connection))
                    edit_index(self.connection, changes[0])
                return changes[0]
            except Locked:
                raise StoreError(f"{self.path}: {_LOCKED}. Try again.") from None
            except DatabaseError as error:
                is_copy = self._replace(error)
                if changes:
                    self._follow(edit_index if is_copy else None, changes[0])
                    return changes[0]
        raise StoreError(f"{self.path}: cannot be used. Remove it; it is made again from the journals.")

    def leave_file(self, error: OSError) -> None:
        """Remove the index file to free its space after this error, and answer from a copy in memory."""
        self._warn_of_memory(str(error.strerror))
        before, self._file = self.connection, None
        self.connection = copy_of_connection(before)
        _close(before)
        self._discard()

    def shrink(self) -> None:
        """Return the space of removed runs to the file system."""
        if self.is_in_file:
            shrink(self.connection)

    @property
    def is_in_file(self) -> bool:
        return self.connection is self._file

    def _open(self) -> None:
        location = os.path.dirname(self.path)
        self._file = None
        if not may_keep_index(location):
            self.connection = index_in_memory()
            return
        if not os.path.isdir(location) or not os.access(location, os.W_OK):
            self.connection = copy_of_file(self.path)
            return
        try:
            self.connection = self._file = open_index(self.path)
            _read_files.add(self.path)
        except Unusable as error:
            self._warn_of_memory(str(error))
            self.connection = copy_of_file(self.path)

    def _attempt(self, action: Callable[[], T]) -> T:
        for _ in range(_ATTEMPTS):
            try:
                if not self._is_current:
                    self._bring_up_to_date()
                    self._is_current = True
                return action()
            except DatabaseError as error:
                self._replace(error)
        raise StoreError(f"{self.path}: cannot be used. Remove it; it is made again from the journals.")

    def _bring_up_to_date(self) -> None:
        try:
            bring_up_to_date(self.connection, self._directory, self._warn, on_wait=self._report_wait)
        except Locked:
            if self._streams:
                return  # so that this answer shows the same state as the rows that are being streamed
            # The connection to the file stays open: to change runs, a command waits for the lock.
            self._warn_of_memory(_LOCKED)
            self.connection = copy_of_connection(self.connection)
            bring_up_to_date(self.connection, self._directory, self._warn)
        read_through_memory(self.connection)

    def _replace(self, error: DatabaseError) -> bool:
        """Replace an index that failed: by a new file if the file was damaged, else by an index in memory.

        Returns whether the new index is a copy of the one that failed, and not made again from the journals.
        """
        self._is_current = False
        failed = self.connection
        if failed is not self._file:
            self.connection = index_in_memory()
            _close(failed)
            return False
        if is_damage(error):
            _close(failed)
            discard_index(self.path)
            self._open()
            return False
        self._warn_of_memory(str(error.orig))
        self.connection, self._file = copy_of_connection(failed), None
        _close(failed)
        return True

    def _prepare_change(self) -> None:
        """Use the index file for a change, brought up to date; if it cannot be written, remove it and use memory.

        Raises Locked if another process holds the lock.
        """
        if self._file is not None and self.connection is not self._file:
            self.connection, self._is_current = self._file, False
        if not self._is_current:
            bring_up_to_date(self.connection, self._directory, self._warn, patient=True, on_wait=self._report_wait)
            self._is_current = True
        if not self.is_in_file:
            self._discard()  # before the change, which it would not contain

    def _follow(self, edit_copy: Callable[[Connection, T], None] | None, changes: T) -> None:
        """Bring the index that replaced one which failed to the state of the journals, which were changed already.

        `edit_copy` is for a copy. In a new index, which is made from the changed journals and which another process
        may have made, runs have other numbers.
        """
        if not self.is_in_file:
            self._discard()
        if edit_copy is not None:
            with writing(self.connection):  # in memory: no other process can hold the lock
                edit_copy(self.connection, changes)
        self.update()

    def _discard(self) -> None:
        if is_regular_file(self.path):
            discard_index(self.path)

    def _report_wait(self) -> None:
        if not self._reported_wait:
            self._reported_wait = True
            self._warn(f"{self.path}: another program holds its lock; waiting for it")

    def _warn_of_memory(self, reason: str) -> None:
        self._warn(f"{self.path}: {reason}; this command makes an index in memory")


def _close(connection: Connection) -> None:
    connection.close()
    connection.engine.dispose()
