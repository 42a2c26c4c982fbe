"""The display on a terminal: what stands there while jobs run, and that nothing stays behind."""

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
from collections.abc import Iterator

import pytest

from tests.waiting import LONG
from tests.workflow.live import Place

SPEC = """
name: Demo
jobs:
- {name: "quick_[red]", command: "true"}
- {name: slow, command: "sleep 60", blocked_by: ["quick_[red]"], resource_requirements: {cpus: 1, memory: 1g}}
- {name: last, command: "true", blocked_by: [slow]}
"""


class Terminal:
    """A terminal of 24 lines of 80, and a program on it."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.written = ""
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(slave)
        self._open = True
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while self._open:
                if select.select([self._master], [], [], 0.05)[0]:
                    self.written += os.read(self._master, 65536).decode(errors="replace")
        except OSError:
            pass  # the last one who had it open closed it

    def hang_up(self) -> None:
        """What is written there from now on is an error for whoever writes it."""
        self._open = False
        self._reader.join()
        os.close(self._master)

    def wait_for(self, words: str) -> None:
        until = time.monotonic() + LONG
        while words not in self.plain:
            assert time.monotonic() < until, f"{words!r} is not in {self.plain!r}"
            time.sleep(0.02)

    @property
    def plain(self) -> str:
        """All that was ever written, without what is not text."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.written)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(LONG)

    def close(self) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        if self._open:
            self.hang_up()


@pytest.fixture
def terminal(place: Place) -> Iterator[Terminal]:
    shown = Terminal(place.command("run", str(place.write(SPEC))), place.environment())
    yield shown
    shown.close()


def test_counts_and_running_jobs_stand_there(terminal: Terminal) -> None:
    terminal.wait_for("1 completed  1 running  1 waiting")
    terminal.wait_for("slow ")
    assert "Demo: 3 jobs" in terminal.plain


def test_a_signal_ends_it_and_the_terminal_is_as_before(terminal: Terminal) -> None:
    terminal.wait_for("slow ")
    assert 128 + signal.SIGINT == terminal.end(signal.SIGINT)
    terminal.wait_for("was stopped")
    before, _, summary = terminal.written.partition("jobmeter: workflow Demo")
    # The cursor is back, and the display was wiped before the summary came.
    assert before.rindex("\x1b[?25h") > before.rindex("\x1b[?25l")
    assert before.endswith("\x1b[1A\x1b[2K")
    assert "\x1b[" not in summary


def test_a_terminal_that_goes_away_costs_nothing_that_is_kept(place: Place, terminal: Terminal) -> None:
    terminal.wait_for("slow ")
    terminal.hang_up()
    time.sleep(0.5)  # the display writes into the void
    assert 128 + signal.SIGHUP == terminal.end(signal.SIGHUP)
    done = place.call("status", "--json")
    assert '"cancelled": 1' in done.stdout, done.stdout


def test_quiet_shows_nothing(place: Place) -> None:
    shown = Terminal(place.command("run", "--quiet", str(place.write(SPEC.replace("60", "0.5")))), place.environment())
    assert 0 == shown.process.wait(LONG)
    assert "" == shown.written
    shown.close()
