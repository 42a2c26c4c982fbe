"""Processes that read journals for a command: how they are started, and that they end with it."""

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
    """Whether there are CPUs for them, and this process can be forked safely: not if it has threads."""
    return (os.cpu_count() or 1) > 1 and hasattr(os, "fork") and threading.active_count() == 1


def start_child(target: Callable[..., None], arguments: Iterable[Any]) -> BaseProcess:
    """A child that runs `target`, which begins with `begin_child`."""
    import multiprocessing  # late: every command that reads imports this module, and few read so much

    process = multiprocessing.get_context("fork").Process(target=target, args=(os.getpid(), *arguments), daemon=True)
    # Ctrl-C while Python forks would be lost in what it calls then.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process


def begin_child(parent: int, inherited: Iterable[Connection]) -> None:
    """In the child: end with the parent, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C goes to all of them; the parent reports it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent(parent)
    # While any process holds the end that is read, writing to it waits for ever.
    for pipe in inherited:
        pipe.close()


def widen(pipe: Connection) -> None:
    """Let a child be some batches ahead of who reads them."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # more than this user may have
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _AHEAD)
