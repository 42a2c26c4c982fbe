"""Writes the output of jobs to our own stdout and stderr."""

from __future__ import annotations

import codecs
import re
from typing import TextIO

from jobmeter.terminal import printable

_KEPT = re.compile("([\r\n\t]+|\x1b\\[[0-9;:]*m)")
_UNFINISHED_COLOUR = re.compile("\x1b(\\[[0-9;:]{0,32})?$")


class JobOutput:
    r"""Writes the output of a job to one of our streams: unchanged, except on a terminal.

    On a terminal, line ends, tabs and colours are kept; other control characters are escaped, as in `\x1b`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._incomplete = ""  # the beginning of a colour sequence whose end has not been written yet
        self._is_coloured = False

    def write(self, content: bytes) -> None:
        """Write bytes of the job's output. Raises BrokenPipeError if the reader has closed the stream."""
        if self._is_terminal:
            self._write_printable(self._decoder.decode(content))
        else:
            self._stream.flush()
            self._stream.buffer.write(content)
            self._stream.buffer.flush()

    def end(self) -> None:
        """Write what is still incomplete, and reset the colours of the terminal if the job set any."""
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
