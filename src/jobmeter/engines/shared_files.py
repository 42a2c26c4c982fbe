"""Whether another machine has the same files as the runner: one that the runner made can be read there."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Sequence

Marker = Sequence[str]
"""The path of a file, and what is in it."""


class MarkerFile:
    """The runner's file. It is made when it is first needed."""

    def __init__(self) -> None:
        self._marker = ("", "")

    def made_in(self, directory: str) -> tuple[str, str]:
        """The marker; the first caller says where."""
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
    """Whether the paths of whoever made the marker are the same files here."""
    path, content = marker
    try:
        with open(path, encoding="ascii") as file:
            return file.read() == content
    except (OSError, UnicodeDecodeError):
        return False
