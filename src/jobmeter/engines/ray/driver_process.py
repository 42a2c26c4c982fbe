"""The runner's side of the driver of Ray: starts the process, sends requests, and receives answers and events."""

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
"""Seconds that the driver may take to end after `close`."""
_MEANWHILE = 1.0
"""Seconds between two calls of `meanwhile`."""


class DriverProcess:
    """Starts the driver. Any thread may `request` and `send`; events come in a separate thread."""

    def __init__(self, program: str | None = None) -> None:
        """`program` is what runs: by default the driver of the engine.

        Raises LaunchError if there are too few processes, descriptors or threads left.
        """
        try:
            self._socket, self._connection, self._process = _start(program or _PROGRAM)
        except OSError as error:
            raise LaunchError(f"the driver of Ray cannot be started: {error.strerror or error}") from None
        self._answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._requesting = threading.Lock()
        self._sending = threading.Lock()
        self._stderr_lines: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._on_event: Callable[..., None] = lambda *event: None
        self._is_closed = False
        # The new threads block all signals: the runner has a thread that waits for them, but blocks them only later.
        given = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            for target in (self._listen, self._read_stderr):
                threading.Thread(target=target, name="jobmeter-ray", daemon=True).start()
        except RuntimeError as error:
            self._process.kill()
            raise LaunchError(f"the driver of Ray cannot be followed: {error}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, given)
            weakref.finalize(self, _end, self._socket, self._process)

    def request(self, kind: str, *arguments: Any, meanwhile: Callable[[], None] | None = None) -> Any:
        """Send a request, and return the driver's answer. Raises LaunchError if the driver refuses, or is gone.

        `meanwhile` is called from time to time until the answer comes; what it raises ends the wait.
        """
        with self._requesting:
            self.send(kind, *arguments)
            while True:
                try:
                    says, value = self._answers.get(timeout=None if meanwhile is None else _MEANWHILE)
                    break
                except queue.Empty:
                    assert meanwhile is not None
                    meanwhile()
        if says == "refused":
            raise LaunchError(value)
        return value

    def send(self, kind: str, *arguments: Any) -> None:
        """Send a request without an answer. If the driver is gone, that is reported as an event."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send((kind, *arguments))

    def report_to(self, on_event: Callable[..., None]) -> None:
        """Call `on_event` with the fields of each event. The last event is `gone`, unless `close` was called."""
        self._on_event = on_event

    def kill(self) -> None:
        """End the process at once, for one that waits for a cluster which is gone."""
        self._process.kill()

    def close(self) -> None:
        self._is_closed = True
        self.send("close")
        _end(self._socket, self._process)

    def _listen(self) -> None:
        why = "the process that is connected with it ended"
        try:
            while True:
                message = self._connection.recv()
                if message[0] in ("answer", "refused"):
                    self._answers.put(message)
                else:
                    self._on_event(*message)
        except (EOFError, OSError):
            last_error = self._last_error_line()
        except Exception as error:  # noqa: BLE001 - whoever waits for an answer reports it
            why = "what the process that is connected with it sends cannot be read"
            last_error = f"{type(error).__name__}: {error}"
        self._answers.put(("refused", f"{why}: {last_error}"))
        if not self._is_closed:
            self._on_event("gone", why)

    def _read_stderr(self) -> None:
        """Read what Ray prints, so that a full pipe does not block it. Only the last lines are kept."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._stderr_lines.append(line.decode(errors="replace").strip())

    def _last_error_line(self) -> str:
        errors = [line for line in self._stderr_lines if " E " in line or " C " in line or "Error" in line]
        says = (errors or list(self._stderr_lines) or [""])[-1]
        return says.rpartition(": ")[2][:200]


def _start(program: str) -> tuple[socket.socket, Any, subprocess.Popen[bytes]]:
    """Our end of a socket, a connection through it, and the driver at its other end.

    Raises OSError if the driver cannot be started; then nothing is left open.
    """
    from multiprocessing.connection import Connection

    ours, theirs = socket.socketpair()
    with theirs, contextlib.ExitStack() as on_failure:
        on_failure.callback(ours.close)
        connection = Connection(os.dup(ours.fileno()))
        on_failure.callback(connection.close)
        process = subprocess.Popen(
            [sys.executable, program, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the runner
        )
        on_failure.pop_all()
    return ours, connection, process


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that listens, unlike `close`
        connection.close()
    try:
        process.wait(timeout=_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
