"""Requests to the process that runs a workflow: a named pipe in the directory of the run.

A request is a line of JSON, `{"cancel": 3, "request": "…"}`, shorter than a pipe takes in one piece. Only the user who
runs the workflow may write to the pipe. The answer is in `settled.jsonl`, see `workflow.settled`.
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
    request: str = ""  # what the answer is to be found by


class ControlPipe:
    """Takes requests for as long as it is entered, in a thread of its own."""

    def __init__(self, path: str, receive: Callable[[CancelJob], None]) -> None:
        self._path = path
        self._receive = receive
        self._descriptor: int | None = None
        self._closing = False

    def __enter__(self) -> ControlPipe:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)  # of a runner that was killed
            os.mkfifo(self._path, 0o600)
            # Open for writing too: else it would end whenever the last who wrote closes it.
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._read, name="jobmeter-control", daemon=True)
            self._thread.start()
        except (OSError, RuntimeError):
            # Some network file systems have no pipes: the workflow runs, and a request to cancel a job is refused.
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
    """None for what is no request: another version may send more than we know."""
    try:
        entry = json.loads(line)
        return CancelJob(int(entry["cancel"]), str(entry["request"]))
    except (ValueError, KeyError, TypeError):
        return None


def send_requests(path: str, requests: Iterable[CancelJob]) -> None:
    """Have the runner take these. UsageError when it cannot."""
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
