"""Relays the output of a container, byte for byte, to where a command's would go, and relays input to it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import threading
import time
from collections.abc import Callable

from jobmeter.launch.capture import write_all
from jobmeter.launch.spawn import Streams

_HEADER = 8
"""Bytes of the header before each piece of output: number of the stream, three zeros, length of the piece."""
_CHUNK = 65536
_LOOK = 0.05


def can_be_input(descriptor: int) -> bool:
    """Whether it is a pipe, a file or a socket, whose content is meant for the job. A terminal is not forwarded."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False  # closed
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def input_of(streams: Streams | None) -> int | None:
    """The descriptor of the job's input; None if there is nothing to forward. `streams` None: jobmeter's own."""
    descriptor = (streams.redirected if streams else {}).get(0, 0)
    return descriptor if can_be_input(descriptor) else None


def open_relay(
    connection: socket.socket, streams: Streams | None, stdin: int | None, on_closed: Callable[[], None]
) -> StreamRelay:
    """A relay to where the job's output goes, with duplicates of the descriptors."""
    redirected = streams.redirected if streams else {}
    return StreamRelay(
        connection,
        stdin=None if stdin is None else os.dup(stdin),
        stdout=_duplicate(redirected.get(1, 1)),
        stderr=_duplicate(redirected.get(2, 2)),
        on_closed=on_closed,
    )


def _duplicate(descriptor: int) -> int:
    """A duplicate, or /dev/null for one that is closed."""
    try:
        return os.dup(descriptor)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


class StreamRelay:
    """Copies the output from `connection` until its end, in one thread, and the input to it in another."""

    def __init__(
        self,
        connection: socket.socket,
        *,
        stdin: int | None,
        stdout: int,
        stderr: int,
        on_closed: Callable[[], None],
    ) -> None:
        """`on_closed` is called when the output has no reader any more. The descriptors are closed by the relay."""
        self._connection = connection
        self._sinks: dict[int, int | None] = {1: stdout, 2: stderr}
        self._outputs = (stdout, stderr)
        self._input = stdin
        self._on_closed = on_closed
        self._listens_since: float | None = None  # when it began to wait for the container runtime; None: it does not
        self._hurried = False
        self._wake_read, self._wake_write = os.pipe()
        connection.settimeout(None)
        self._threads = [threading.Thread(target=self._pass_output, name="jobmeter-output", daemon=True)]
        if stdin is not None:
            self._threads.append(
                threading.Thread(target=self._pass_input, args=(stdin,), name="jobmeter-input", daemon=True)
            )

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def hurry(self) -> None:
        """Wait for a slow reader no longer than for the container runtime: the job is being ended."""
        self._hurried = True

    def finish(self, patience: float) -> None:
        """Copy the rest, until its end or until the container runtime sent nothing for `patience` seconds.

        The reader of the output may take longer, unless `hurry` was called.
        """
        os.write(self._wake_write, b"w")
        output, *inputs = self._threads
        if output.ident is None:
            self._close_outputs()
        else:
            self._await_the_rest(output, patience)
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            for thread in inputs:
                thread.join()
            output.join(_LOOK)  # a thread that still waits for a reader is abandoned
        with contextlib.suppress(OSError):
            self._connection.close()
        for descriptor in (self._input, self._wake_read, self._wake_write):
            if descriptor is not None:
                os.close(descriptor)

    def _await_the_rest(self, output: threading.Thread, patience: float) -> None:
        began = time.monotonic()
        while output.is_alive():
            silent_since = began if self._hurried else self._listens_since
            if silent_since is not None and time.monotonic() - max(silent_since, began) >= patience:
                return
            output.join(_LOOK)

    def _close_outputs(self) -> None:
        for descriptor in self._outputs:
            os.close(descriptor)

    def _pass_output(self) -> None:
        try:
            self._pass_frames()
        finally:
            self._close_outputs()

    def _pass_frames(self) -> None:
        while header := self._receive(_HEADER):
            length = int.from_bytes(header[4:8], "big")
            while length > 0:
                data = self._receive(min(length, _CHUNK), whole=False)
                if not data:
                    return
                length -= len(data)
                self._write(header[0], data)

    def _receive(self, count: int, *, whole: bool = True) -> bytes:
        """Receive `count` bytes; with `whole` false, up to `count` that are available. Empty at the end."""
        data = b""
        while len(data) < count:
            self._listens_since = time.monotonic()
            try:
                part = self._connection.recv(count - len(data))
            except OSError:
                return b""  # the container runtime has ended
            finally:
                self._listens_since = None
            if not part:
                return b""
            data += part
            if not whole:
                break
        return data

    def _write(self, stream: int, data: bytes) -> None:
        sink = self._sinks.get(stream)
        if sink is None:
            return  # it has no reader any more
        try:
            write_all(sink, data)
        except OSError:
            self._sinks[stream] = None
            self._on_closed()

    def _pass_input(self, source: int) -> None:
        """Copy until the end of the input, which is passed on, or the end of the container."""
        poll = select.poll()
        poll.register(source, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        try:
            while True:
                ready = [descriptor for descriptor, _ in poll.poll()]
                if self._wake_read in ready:
                    return
                data = os.read(source, _CHUNK)
                if not data:
                    self._connection.shutdown(socket.SHUT_WR)
                    return
                self._connection.sendall(data)
        except OSError:
            return  # the container accepts no more input
