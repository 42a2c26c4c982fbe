"""Requests to the process that runs a workflow: a named pipe in the directory of the run.

A request is a line of JSON, `{"cancel": 3, "request": "…"}`, short enough for an atomic write to a pipe. Only the user
who runs the workflow may write to the pipe. The answer is a line of `settled.jsonl`, see `workflow.settled`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from jobmeter.errors import UsageError
from jobmeter.journal.writer import encode


class CancelJob(NamedTuple):
    """A request to end one job, or not to start it."""

    number: int
    request: str = ""  # identifies the answer


class ControlPipe:
    """A context manager: while it is entered, a thread receives requests."""

    def __init__(self, path: str, receive: Callable[[CancelJob], None]) -> None:
        self._path = path
        self._receive = receive
        self._descriptor: int | None = None
        self._closing = False

    def __enter__(self) -> ControlPipe:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)  # left by a runner that was killed
            os.mkfifo(self._path, 0o600)
            # Open for writing too: otherwise reads return end-of-file each time the last writer closes the pipe.
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._read, name="jobmeter-control", daemon=True)
            self._thread.start()
        except (OSError, RuntimeError):
            # Some network file systems have no named pipes: the workflow runs, and requests to cancel a job fail.
            self._discard()
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            self._unlink()
            self._closing = True
            with contextlib.suppress(OSError):
                os.write(self._descriptor, b"\n")  # wakes the thread
            self._thread.join()
            self._discard()

    def _read(self) -> None:
        assert self._descriptor is not None
        unread = b""
        while not self._closing:
            *lines, unread = (unread + os.read(self._descriptor, 65536)).split(b"\n")
            for line in lines:
                if (request := _parse(line)) is not None:
                    self._receive(request)

    def _discard(self) -> None:
        self._unlink()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _unlink(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _parse(line: bytes) -> CancelJob | None:
    """The request in a line; None if it is not known here: another version may send others."""
    try:
        entry = json.loads(line)
        return CancelJob(int(entry["cancel"]), str(entry["request"]))
    except (ValueError, KeyError, TypeError):
        return None


def send_requests(path: str, requests: Iterable[CancelJob]) -> None:
    """Send requests to the runner. Raises UsageError if it cannot receive them."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        raise UsageError("the workflow is run by another user: only they can cancel its jobs") from None
    except OSError as error:
        why = "it just ended" if error.errno == errno.ENXIO else os.strerror(error.errno or 0)
        raise UsageError(f"{path}: the process that runs the workflow takes no requests: {why}") from None
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise UsageError(f"{path}: it is not a pipe, and no runner reads it")
        os.set_blocking(descriptor, True)
        for each in requests:
            os.write(descriptor, encode({"cancel": each.number, "request": each.request}))
    except BrokenPipeError:
        raise UsageError(f"{path}: the process that runs the workflow just ended") from None
    finally:
        os.close(descriptor)
