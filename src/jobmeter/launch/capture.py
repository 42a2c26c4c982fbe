"""`--capture`: copies the job's output to files, while it still goes to stdout and stderr."""

from __future__ import annotations

import os
import select
import time

from jobmeter.errors import LaunchError, UsageError
from jobmeter.launch.spawn import Streams
from jobmeter.light_typing import NoReturn
from jobmeter.links import open_output

_REST = 0.2
"""Seconds to wait until output that was already written is copied, if processes of the job still run."""


class Capture:
    """Copies stdout and stderr into `DIR/stdout` and `DIR/stderr`.

    A separate process copies. It ends when all writers have closed their ends of the pipes. So processes that the job
    leaves running, or that outlive a jobmeter that was killed, can go on writing.
    """

    def __init__(self, directory: str) -> None:
        self._copies: list[_Copy] = []
        self._process = 0
        try:
            os.makedirs(directory, exist_ok=True)
            for number, name in ((1, "stdout"), (2, "stderr")):
                file = open_output(os.path.join(directory, name))
                self._copies.append(_Copy(*os.pipe(), number, file))
        except OSError as error:
            raise UsageError(f"--capture: {error.filename or directory}: {error.strerror}") from None
        self.streams = Streams(stdout=self._copies[0].write, stderr=self._copies[1].write)

    def start(self) -> int:
        """Start the process that copies; returns its pid."""
        try:
            self._process = os.fork()
        except OSError as error:
            raise LaunchError(f"--capture: no process to copy the output: {error.strerror}") from None
        if self._process == 0:
            _copy_all(self._copies)
        for copy in self._copies:
            os.close(copy.read)
            os.close(copy.file)
        return self._process

    def release(self) -> None:
        """Close our ends of the pipes, once the job has its own."""
        for copy in self._copies:
            os.close(copy.write)

    def finish(self, *, wait: bool) -> None:
        """Wait until all is copied; without `wait`, only for a moment: other processes may hold the pipes for long."""
        deadline = time.monotonic() + _REST
        try:
            while os.waitpid(self._process, 0 if wait else os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
                time.sleep(0.01)
        except ChildProcessError:
            pass  # if SIGCHLD is ignored, there is nothing to wait for, and waitpid fails once the last child has ended


class _Copy:
    """One stream: what comes from the pipe goes to the stream and to the file."""

    def __init__(self, read: int, write: int, stream: int, file: int) -> None:
        self.read = read
        self.write = write
        self.stream = stream
        self.file = file
        self._copying = True

    def step(self) -> bool:
        """Copy what is available; False at the end, or if the stream has no reader. A full disk ends only the file."""
        data = os.read(self.read, 65536)
        try:
            write_all(self.stream, data)
        except OSError:
            return False
        try:
            if self._copying:
                write_all(self.file, data)
        except OSError:
            self._copying = False
        return bool(data)


def _copy_all(copies: list[_Copy]) -> NoReturn:
    """In the copying process: copy until the pipes are closed. Signals to our process group do not reach it."""
    try:
        os.setsid()
        _close_others({0, 1, 2, *(d for copy in copies for d in (copy.read, copy.file))})
        poll = select.poll()
        by_descriptor = {copy.read: copy for copy in copies}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        while by_descriptor:
            for descriptor, _ in poll.poll():
                if not by_descriptor[descriptor].step():
                    poll.unregister(descriptor)
                    os.close(descriptor)  # if the stream has no reader, the job gets SIGPIPE as it would without us
                    del by_descriptor[descriptor]
    finally:
        os._exit(0)


def _close_others(needed: set[int]) -> None:
    """Close inherited descriptors, which would keep files and pipes of jobmeter open."""
    try:
        opened = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        opened = list(range(256))
    for descriptor in opened:
        if descriptor not in needed:
            os.closerange(descriptor, descriptor + 1)  # ignores a descriptor that is not open


def write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(sink, view) :]
        except BlockingIOError:
            select.select([], [sink], [])
