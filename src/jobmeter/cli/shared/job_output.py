"""What jobs wrote, on our own streams."""

from __future__ import annotations

import codecs
import re
from typing import TextIO

from jobmeter.terminal import printable

_KEPT = re.compile("([\r\n\t]+|\x1b\\[[0-9;:]*m)")
_UNFINISHED_COLOUR = re.compile("\x1b(\\[[0-9;:]{0,32})?$")


class JobOutput:
    r"""What a job wrote, to a stream of ours: as it is, except on a terminal.

    There its lines, tabs and colours stay, and all else that controls a terminal is spelt as `\x1b`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._incomplete = ""  # the beginning of a colour
        self._is_coloured = False

    def write(self, content: bytes) -> None:
        """BrokenPipeError when the reader is gone."""
        if self._is_terminal:
            self._write_printable(self._decoder.decode(content))
        else:
            self._stream.flush()
            self._stream.buffer.write(content)
            self._stream.buffer.flush()

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._is_terminal:
            self._write_printable(self._decoder.decode(b"", final=True), final=True)
            if self._is_coloured:
                self._stream.write("\x1b[0m")
                self._stream.flush()

    def _write_printable(self, words: str, *, final: bool = False) -> None:
        words = self._incomplete + words
        unfinished = None if final else _UNFINISHED_COLOUR.search(words)
        self._incomplete = words[unfinished.start() :] if unfinished else ""
        parts = _KEPT.split(words[: unfinished.start()] if unfinished else words)
        self._is_coloured = self._is_coloured or any(part.startswith("\x1b") for part in parts[1::2])
        parts[::2] = map(printable, parts[::2])
        self._stream.write("".join(parts))
        self._stream.flush()
