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

from tests.waiting import LONG


def _as_from_a_shell() -> None:
    """Ctrl-C is for the program. Tests in the background ignore it, and other tests may have blocked it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class Terminal:
    """A terminal of 24 lines of 80, and a program on it."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: str | None = None) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.written = ""
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
                    self.written += os.read(self._master, 65536).decode(errors="replace")
        except OSError:
            pass  # the last one who had it open closed it

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

    def close(self) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        if self._open:
            self.hang_up()
