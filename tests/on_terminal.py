"""Runs a command below a terminal of its own, as people do."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.waiting import LONG, wait_for


class Shown(NamedTuple):
    code: int
    text: str


class TerminalSession:
    """A command that runs below a terminal; what it shows so far, and what is typed."""

    def __init__(
        self, words: Sequence[str], env: Mapping[str, str], *, cwd: Path | None = None, columns: int = 120
    ) -> None:
        self._controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        settings = {**env, "TERM": "xterm-256color", "COLUMNS": str(columns)}
        self.process = subprocess.Popen(
            words, env=settings, cwd=cwd, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(terminal)
        self._parts: list[bytes] = []
        self._reader = threading.Thread(target=self._read_all)
        self._reader.start()

    @property
    def text(self) -> str:
        return b"".join(self._parts).decode("utf-8", "replace")

    def type(self, keys: str) -> None:
        os.write(self._controller, keys.encode())

    def wait_for(self, words: str) -> None:
        """Wait until these words were shown."""
        wait_for(lambda: words in self.text or self.process.poll() is not None, f"{words!r} on the terminal")
        assert words in self.text, self.text

    def end(self) -> Shown:
        code = self.process.wait(LONG)
        self._reader.join(LONG)
        os.close(self._controller)
        return Shown(code, b"".join(self._parts).decode("utf-8"))

    def _read_all(self) -> None:
        try:
            while data := os.read(self._controller, 1 << 16):
                self._parts.append(data)
        except OSError:
            pass  # the other end of a terminal is closed: EIO


def visible(text: str) -> list[str]:
    """The lines that stay on the screen: what was cleared again is gone."""
    return [line.rpartition("\r\x1b[K")[2].rstrip("\r") for line in text.split("\n")]
