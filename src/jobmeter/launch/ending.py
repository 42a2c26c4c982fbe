"""Ends jobs whose own jobmeter is gone: the processes below shepherds that were left."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from typing import NamedTuple

from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import read_stat
from jobmeter.launch.signals import Herd
from jobmeter.launch.supervisor import GRACE

_LOOK = 0.02


class Shepherd(NamedTuple):
    """The pid of one and when it started: pids are reused."""

    pid: int
    start: int


def shepherd_of(machine: Machine, pid: int) -> Shepherd | None:
    """The process of this pid as it is now; None when there is none."""
    try:
        stat = read_stat(machine, pid)
    except (OSError, ValueError):
        return None
    return None if stat.state in "ZX" else Shepherd(pid, stat.start)


def end_jobs(machine: Machine, shepherds: Iterable[Shepherd], grace: float = GRACE) -> int:
    """End all processes below those shepherds that still live; returns how many shepherds that were.

    They are asked first, and killed after `grace` seconds. Nobody tells us of their end, so we look.
    """
    left = {each: herd for each in shepherds if (herd := _herd_of(machine, each)) is not None}
    found = len(left)
    deadline = time.monotonic() + grace
    for herd in left.values():
        herd.tell(signal.SIGTERM)
        herd.tell(signal.SIGCONT)  # one that is stopped could not obey
    while left:
        for shepherd in [each for each in left if shepherd_of(machine, each.pid) != each]:
            left.pop(shepherd).close()
        if time.monotonic() >= deadline:
            for herd in left.values():
                herd.tell(signal.SIGKILL)
        time.sleep(_LOOK if left else 0.0)
    return found


def _herd_of(machine: Machine, shepherd: Shepherd) -> Herd | None:
    """What is below a shepherd; None when it is gone, perhaps just now."""
    if shepherd_of(machine, shepherd.pid) != shepherd:
        return None
    try:
        return Herd(machine, shepherd.pid, with_root=False)
    except (OSError, ValueError):
        return None
