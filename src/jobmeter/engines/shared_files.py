"""Tests whether another machine has the same files as the runner: whether it can read a file that the runner made."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Sequence

Marker = Sequence[str]
"""The path of the runner's file, and its content."""


class MarkerFile:
    """The runner's file. It is created when it is first needed."""

    def __init__(self) -> None:
        self._marker = ("", "")

    def made_in(self, directory: str) -> tuple[str, str]:
        """The marker. Its file is in the directory of the first call."""
        if not self._marker[0]:
            content = uuid.uuid4().hex
            path = os.path.join(directory, f".jobmeter-{content[:8]}")
            with contextlib.suppress(OSError), open(path, "x", encoding="ascii") as file:
                file.write(content)
            self._marker = (path, content)
        return self._marker

    def remove(self) -> None:
        if self._marker[0]:
            with contextlib.suppress(OSError):
                os.unlink(self._marker[0])


def has_same_files(marker: Marker) -> bool:
    """Whether the paths of the runner that made the marker are the same files here."""
    path, content = marker
    try:
        with open(path, encoding="ascii") as file:
            return file.read() == content
    except (OSError, UnicodeDecodeError):
        return False
