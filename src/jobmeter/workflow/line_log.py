"""Files of a run of a workflow that its runner appends to: a JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from jobmeter.errors import StoreError
from jobmeter.journal.writer import encode
from jobmeter.store_access import access_like, open_or_create


class LineLog:
    """An append-only file of JSON objects, one a line. Any thread may append."""

    def __init__(self, path: str, flags: int = 0) -> None:
        """Open the file, created if missing. Raises StoreError if it cannot be opened."""
        try:
            access = access_like(os.path.dirname(path))
            self._descriptor = open_or_create(path, access, os.O_WRONLY | os.O_APPEND | flags)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None

    def append(self, entry: dict[str, Any]) -> None:
        """Append an object as one line. Raises OSError if it cannot be written."""
        # With a single write, so that lines of several threads do not mix.
        os.write(self._descriptor, encode(entry))

    def sync(self) -> None:
        """Call fsync, so that what was written survives a crash of the machine."""
        try:
            os.fsync(self._descriptor)
        except OSError:
            pass  # the journal's own sync reports a disk that fails

    def close(self) -> None:
        os.close(self._descriptor)


def read_lines(path: str) -> Iterator[dict[str, Any]]:
    """The objects of a file, none if it does not exist; lines that are incomplete or damaged are left out.

    Raises StoreError if the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return  # nothing was written
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the machine crashed while it was written
        if isinstance(entry, dict):
            yield entry
