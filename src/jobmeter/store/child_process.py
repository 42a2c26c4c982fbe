"""Starts child processes that read journals for a command, and makes sure that they end with it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from jobmeter.kernel.parent_death import end_with_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_AHEAD = 1 << 20


def can_start_children() -> bool:
    """Whether there are several CPUs, and this process can be forked safely: not if it has other threads."""
    return (os.cpu_count() or 1) > 1 and hasattr(os, "fork") and threading.active_count() == 1


def start_child(target: Callable[..., None], arguments: Iterable[Any]) -> BaseProcess:
    """Start a child process that runs `target`, which must call `begin_child` first."""
    import multiprocessing  # late: every command that reads the store imports this module, and few need a child

    process = multiprocessing.get_context("fork").Process(target=target, args=(os.getpid(), *arguments), daemon=True)
    # During a fork, Python would lose the KeyboardInterrupt of Ctrl-C in the functions that it calls then.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process


def begin_child(parent: int, inherited: Iterable[Connection]) -> None:
    """In the child: make sure that it ends with the parent, however the parent ends; close `inherited` pipes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C goes to the parent and all children; the parent reports it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent(parent)
    # While any process has the read end of a pipe open, writing to the full pipe blocks for ever.
    for pipe in inherited:
        pipe.close()


def widen(pipe: Connection) -> None:
    """Enlarge the buffer of a pipe, so that a child can be some batches ahead of the reader."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # more than the limit of this user
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _AHEAD)
