"""A terminal, and a program on it, as a person would have them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.waiting import LONG


def _as_from_a_shell() -> None:
    """Ctrl-C is for the program. Tests in the background ignore it, and other tests may have blocked it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class Shown(NamedTuple):
    """How a program ended, and all that it wrote."""

    code: int
    text: str


class Terminal:
    """A terminal, and a program on it."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        cwd: str | Path | None = None,
        *,
        lines: int = 24,
        columns: int = 80,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._parts: list[bytes] = []
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            # Where they are set, they go before what the terminal says.
            env={name: text for name, text in environment.items() if name not in ("COLUMNS", "LINES")}
            | {"TERM": "xterm"},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_as_from_a_shell,
        )
        os.close(slave)
        self._open = True
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        ready = select.poll()
        ready.register(self._master, select.POLLIN)
        try:
            while self._open:
                if ready.poll(50):
                    self._parts.append(os.read(self._master, 65536))
        except OSError:
            pass  # the last one who had it open closed it

    @property
    def written(self) -> str:
        """All that was ever written."""
        return b"".join(self._parts).decode(errors="replace")

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        """What runs on it gets SIGWINCH."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def hang_up(self) -> None:
        """What is written there from now on is an error for whoever writes it."""
        self._open = False
        self._reader.join()
        os.close(self._master)

    def wait_for(self, words: str) -> None:
        self.wait_for_pattern(re.escape(words))

    def wait_for_pattern(self, pattern: str) -> None:
        until = time.monotonic() + LONG
        while not re.search(pattern, self.plain):
            may_come = time.monotonic() < until and (self.process.poll() is None or self._reads_more())
            assert may_come, f"{pattern!r} is not in {self.plain!r}"
            time.sleep(0.02)

    def _reads_more(self) -> bool:
        """Whether something was written that is not in `written` yet."""
        before = len(self.written)
        time.sleep(0.2)
        return len(self.written) > before

    @property
    def plain(self) -> str:
        """All that was ever written, without what is not text."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.written)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(LONG)

    def exit_code(self) -> int:
        """Wait for the end of the program, close the terminal."""
        code = self.process.wait(LONG)
        self.close()
        return code

    def finish(self) -> Shown:
        """Wait for the end of the program and of all that it wrote, close the terminal."""
        code = self.process.wait(LONG)
        self._reader.join(LONG)
        self.close()
        return Shown(code, b"".join(self._parts).decode("utf-8"))

    def close(self) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        if self._open:
            self.hang_up()


def visible(text: str) -> list[str]:
    """The lines that stay on the screen: what was cleared again is gone."""
    return [line.rpartition("\r\x1b[K")[2].rstrip("\r") for line in text.split("\n")]
