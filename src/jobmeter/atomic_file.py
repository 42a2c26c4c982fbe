"""Replacing a file in one step: at every moment it has all of its old content, or all of its new."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any

_LONGEST = 100  # characters of the file's name in that of the temporary one: names end at 255 bytes


@contextlib.contextmanager
def replacing(path: str, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A new file that takes the place of `path` when the block ends, and is removed when it fails.

    The permissions of the old file stay; through a symbolic link, the file it points to is replaced. OSError when it
    cannot be written.
    """
    target = os.path.realpath(path)
    # In the same directory: a rename from another file system would be a copy.
    name = f".{os.path.basename(target)[:_LONGEST]}.{os.urandom(6).hex()}"
    temporary = os.path.join(os.path.dirname(target), name)
    # A new file gets the permissions that the umask allows, as with open().
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") if binary else open(descriptor, "w", encoding="utf-8", newline="") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(descriptor, os.stat(target).st_mode & 0o7777)
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
