"""`--capture`: the job's output goes where it always went, and to files as well."""

from __future__ import annotations

import os
import select
import threading

from jobmeter.errors import UsageError
from jobmeter.launch.spawn import Streams


class Capture:
    """Tees stdout and stderr into `DIR/stdout` and `DIR/stderr`."""

    def __init__(self, directory: str) -> None:
        self._threads: list[threading.Thread] = []
        self._tees = []
        try:
            os.makedirs(directory, exist_ok=True)
            for number, name in ((1, "stdout"), (2, "stderr")):
                read, write = os.pipe()
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                copy = os.open(os.path.join(directory, name), flags, 0o666)
                self._tees.append((read, write, number, copy))
        except OSError as error:
            raise UsageError(f"--capture: {error.filename}: {error.strerror}") from None
        self.streams = Streams(stdout=self._tees[0][1], stderr=self._tees[1][1])

    def start(self) -> None:
        """Start copying; to be called once the job has its ends of the pipes."""
        for read, write, number, copy in self._tees:
            os.close(write)
            thread = threading.Thread(target=_tee, args=(read, number, copy), daemon=True)
            thread.start()
            self._threads.append(thread)

    def finish(self, *, wait: bool) -> None:
        """Copy the rest; without `wait`, only what is there: another process may hold the pipe for long."""
        for thread in self._threads:
            thread.join(None if wait else 0.2)


def _tee(source: int, stream: int, copy: int) -> None:
    """Write to the stream and to the file. A full disk ends the file only; a closed stream gives the job SIGPIPE."""
    copying = True
    while data := os.read(source, 65536):
        try:
            write_all(stream, data)
        except OSError:
            os.close(source)  # the job gets SIGPIPE, as it would without us
            return
        try:
            if copying:
                write_all(copy, data)
        except OSError:
            copying = False


def write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(sink, view) :]
        except BlockingIOError:
            select.select([], [sink], [])
