"""The index of a store: in its file, or in memory while that file cannot be written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

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
"""With the file, with a new file, with a copy in memory, with an empty index in memory."""
_LOCKED = "another program holds its lock"

T = TypeVar("T")

_read_files: set[str] = set()
"""Files of indexes that this process has answered from."""


def discard_read_files() -> list[str]:
    """Remove the files that this process has answered from, so that the next answer is made from the journals alone.

    For values that no index of ours has, which show only where they are used: others changed the file, or the disk did.
    """
    discarded = []
    for path in sorted(_read_files):
        with contextlib.suppress(StoreError):
            discard_index(path)
            discarded.append(path)
    _read_files.clear()
    return discarded


class Index:
    """Answers queries, whatever became of its file: it is made from the journals, which are never changed for it."""

    def __init__(self, path: str, directory: str, warn: Callable[[str], None]) -> None:
        self.path = path
        self.connection: Connection
        self._directory = directory
        self._warn = warn
        self._is_current = False
        self._streams = 0
        self._reported_wait = False
        self._file: Connection | None = None  # the file's, also while another program holds its lock
        self._open()

    def close(self) -> None:
        """Release the files of the index. It is not usable after that."""
        for connection in (self.connection, self._file):
            if connection is not None:
                _close(connection)  # again, if it is the same: that does nothing

    def update(self) -> None:
        """Bring the index up to date with the journals."""
        self._is_current = False
        self._attempt(lambda: None)

    def query(self, statement: Select[Any]) -> list[Row[Any]]:
        """All rows of the answer."""
        return self._attempt(lambda: list(self.connection.execute(statement).all()))

    def stream(self, statement: Select[Any]) -> Iterator[Row[Any]]:
        """The rows of the answer one by one, all as they were when the first was read."""
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
        """Change journals, and then the index likewise, in one transaction: readers see what was before, or all of it.

        When the index cannot be written, as on a full disk, its file is removed: the next reader makes it again.
        StoreError when another program holds the lock.
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
                self._replace(error)
                if changes:
                    self._follow(edit_index, changes[0])
                    return changes[0]
        raise StoreError(f"{self.path}: cannot be used. Remove it; it is made again from the journals.")

    def leave_file(self, reason: str) -> None:
        """Remove the file, whose space is needed, and answer from memory."""
        self._warn_of_memory(reason)
        before, self._file = self.connection, None
        self.connection = copy_of_connection(before)
        _close(before)
        self._discard()

    def shrink(self) -> None:
        """Give space that removed runs used back to the file system."""
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
                return  # the rows that are being read, and this answer, are of one moment
            # The connection stays open: a command that changes runs waits for the lock.
            self._warn_of_memory(_LOCKED)
            self.connection = copy_of_connection(self.connection)
            bring_up_to_date(self.connection, self._directory, self._warn)
        read_through_memory(self.connection)

    def _replace(self, error: DatabaseError) -> None:
        """Another index in place of one that failed: a new file if it was damaged, else one in memory."""
        self._is_current = False
        failed = self.connection
        if failed is not self._file:
            self.connection = index_in_memory()
        elif is_damage(error):
            _close(failed)
            discard_index(self.path)
            self._open()
            return
        else:
            self._warn_of_memory(str(error.orig))
            self.connection, self._file = copy_of_connection(failed), None
        _close(failed)

    def _prepare_change(self) -> None:
        """Runs are changed in the file of the index; if it cannot be written, without it. Locked when others do so."""
        if self._file is not None and self.connection is not self._file:
            self.connection, self._is_current = self._file, False
        if not self._is_current:
            bring_up_to_date(self.connection, self._directory, self._warn, patient=True, on_wait=self._report_wait)
            self._is_current = True
        if not self.is_in_file:
            self._discard()  # before the change: it would not show it

    def _follow(self, edit_index: Callable[[Connection, T], None], changes: T) -> None:
        """Journals were changed and the index failed: change the one that took its place."""
        if not self.is_in_file:
            self._discard()
        with writing(self.connection):
            edit_index(self.connection, changes)
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
