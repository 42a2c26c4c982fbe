"""The runner's side of the driver of Ray: a process that is asked, and that reports."""

from __future__ import annotations

import collections
import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from jobmeter.errors import LaunchError

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.py")
_LAST_LINES = 20
_END = 10.0
"""Seconds in which it ends after `close`."""


class DriverProcess:
    """Starts it at once. Any thread may `ask` and `tell`; events come in a thread of its own."""

    def __init__(self) -> None:
        """LaunchError when there are too few processes or threads left for it."""
        from multiprocessing.connection import Connection

        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, _PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the runner
            )
        self._socket = ours
        self._connection: Any = Connection(os.dup(ours.fileno()))
        self._answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._asking = threading.Lock()
        self._sending = threading.Lock()
        self._said: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._on_event: Callable[..., None] = lambda *event: None
        self._is_closed = False
        # Signals are for the thread of the runner that waits for them, which blocks them only after this.
        given = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            for target in (self._listen, self._hear):
                threading.Thread(target=target, name="jobmeter-ray", daemon=True).start()
        except RuntimeError as error:
            self._process.kill()
            raise LaunchError(f"the driver of Ray cannot be followed: {error}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, given)
            weakref.finalize(self, _end, self._socket, self._process)

    def ask(self, kind: str, *arguments: Any) -> Any:
        """The driver's answer. LaunchError when it refuses, or is gone."""
        with self._asking:
            self.tell(kind, *arguments)
            says, value = self._answers.get()
        if says == "refused":
            raise LaunchError(value)
        return value

    def tell(self, kind: str, *arguments: Any) -> None:
        """Without an answer. If the driver is gone, that is reported as an event."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send((kind, *arguments))

    def report_to(self, on_event: Callable[..., None]) -> None:
        """Events go there, as arguments; the last is `gone`, unless it was closed."""
        self._on_event = on_event

    def close(self) -> None:
        self._is_closed = True
        self.tell("close")
        _end(self._socket, self._process)

    def _listen(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                break
            if message[0] in ("answer", "refused"):
                self._answers.put(message)
            else:
                self._on_event(*message)
        why = "the process that is connected with it ended"
        self._answers.put(("refused", f"{why}: {self._last_words()}"))
        if not self._is_closed:
            self._on_event("gone", why)

    def _hear(self) -> None:
        """What Ray prints, lest it stands still; only the last is of use."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line.decode(errors="replace").strip())

    def _last_words(self) -> str:
        errors = [line for line in self._said if " E " in line or " C " in line or "Error" in line]
        says = (errors or list(self._said) or [""])[-1]
        return says.rpartition(": ")[2][:200]


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # wakes whoever listens, unlike `close`
        connection.close()
    try:
        process.wait(timeout=_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
