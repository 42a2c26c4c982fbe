"""Ends a process together with its parent (prctl(2), PR_SET_PDEATHSIG)."""

from __future__ import annotations

import os
import signal

from jobmeter.kernel import libc

_SET_PARENT_DEATH_SIGNAL = 1


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which forked it, ends. Does nothing without prctl(2)."""
    if libc.call("prctl", _SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0) is None:
        return
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before the call
