"""Opens journals and reads their lines in bounded memory, whatever the file is or holds."""

from __future__ import annotations

import errno
import functools
import json
import os
import stat
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from jobmeter.byte_text import without_surrogates
from jobmeter.errors import StoreError

LONGEST_LINE = 64 << 20
"""Bytes. A longer line is skipped: the longest that `run` writes is a command of some megabytes, escaped."""


def open_journal(path: str) -> BinaryIO:
    """Open a file for reading. Raises StoreError if it cannot be read, or is not regular: a link, a pipe, a device.

    A link may lead to the file of another user or to a device without an end, and opening a pipe waits for its writer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{path}: is a symbolic link, which is not followed") from None
        raise StoreError(f"{path}: {error.strerror}") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb", buffering=1 << 20)
    os.close(descriptor)
    raise StoreError(f"{path}: {os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else 'is not a regular file'}")


def read_lines(file: IO[bytes], longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """The lines. A line of more than `longest` bytes comes in pieces, of which all but the last have no newline."""
    return iter(functools.partial(file.readline, longest), b"")


def skip_line(file: BinaryIO) -> tuple[int, bool]:
    """Skip the rest of a line; returns how many bytes it had, and whether a newline ended it."""
    skipped = 0
    while piece := file.readline(1 << 20):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            return skipped, True
    return skipped, False


def too_long(path: str, number: int) -> str:
    return f"{path}: line {number} is longer than {LONGEST_LINE >> 20} MiB and was skipped"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse)


def parse_line(line: bytes) -> Any:
    """The JSON of a line; None if it is not valid. NaN and Infinity, which Python writes but JSON lacks, are not valid.

    Earlier versions wrote lone surrogates: see `jobmeter.byte_text`.
    """
    try:
        entry = DECODER.decode(line.decode())
        return without_surrogates(entry) if rb"\ud" in line else entry
    except (ValueError, RecursionError):
        return None
