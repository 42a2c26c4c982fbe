"""Where an export goes: stdout, or a file that appears only when it is complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any

from jobmeter.atomic_file import replacing
from jobmeter.errors import JobmeterError, UsageError
from jobmeter.links import Refused, open_output, output_path
from jobmeter.terminal import data_output


@contextlib.contextmanager
def destination(path: str | None, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open the output: stdout, or a file that replaces `path` when the block ends, unless the block raises.

    Raises UsageError or JobmeterError if the file cannot be written.
    """
    if path is None:
        yield data_output()
        return
    check_destination(path)
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe or a device is written to, never replaced.
        opened = open_output(path)
        with open(opened, "wb") if binary else open(opened, "w", encoding="utf-8", newline="") as file:
            yield file
        return
    try:
        with replacing(path, binary=binary) as file:
            yield file
    except OSError as error:
        raise JobmeterError(f"{path}: {error.strerror}. Nothing was written there.") from None


def check_destination(path: str) -> None:
    """Raise UsageError if the file cannot be created. Called before any work is done."""
    try:
        directory = os.path.dirname(output_path(path))
    except Refused as error:
        raise UsageError(f"-o: {error.filename}: {error.strerror}. Name another file.") from None
    if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
        return
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(directory, os.W_OK):
        raise UsageError(f"-o: {path}: cannot be written there. Name a file in a directory that you may write to.")
