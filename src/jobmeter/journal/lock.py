"""Locks a journal against other programs that would append to it or replace it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from typing import IO

from jobmeter.links import directory_of, open_in

_LOCK_SECONDS = 60.0
"""How long to wait for a program that replaces a file."""


@contextlib.contextmanager
def journal_lock(path: str, *, for_appending: bool = False, directory: int | None = None) -> Iterator[IO[bytes]]:
    """Open and lock a file of ended runs, against appending and replacing. Raises OSError if that is not possible.

    `directory`: a descriptor of its directory, if that is already open. The writer of a run takes no lock: no other
    process writes runs to its file.
    """
    with contextlib.nullcontext(directory) if directory is not None else directory_of(path) as place:
        while True:
            with _open_locked(place, path, for_appending=for_appending) as file:
                if os.path.samestat(os.fstat(file.fileno()), _stat(place, path)):
                    yield file
                    return
            # The file was replaced while we waited.


def _open_locked(directory: int, path: str, *, for_appending: bool) -> IO[bytes]:
    flags = os.O_RDWR | os.O_APPEND if for_appending else os.O_RDONLY
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        descriptor = open_in(directory, os.path.basename(path), flags, path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "another program holds its lock. Try again.") from None
            time.sleep(0.01)
            continue
        except OSError:
            pass  # a file system without locks
        return open(descriptor, "rb+" if for_appending else "rb", buffering=0 if for_appending else -1)


def _stat(directory: int, path: str) -> os.stat_result:
    return os.stat(os.path.basename(path), dir_fd=directory, follow_symlinks=False)
