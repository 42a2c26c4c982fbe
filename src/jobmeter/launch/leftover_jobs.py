"""Ends jobs whose own jobmeter is gone: the processes below shepherds that were left, or that lost theirs too."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from typing import NamedTuple

from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, read_kin
from jobmeter.launch.members import Members
from jobmeter.launch.signals import Herd
from jobmeter.launch.supervisor import GRACE

_LOOK = 0.02


class LeftJob(NamedTuple):
    """What a job is found by. Its shepherd may have been killed; then by its main process and its cgroup."""

    shepherd: Identity
    main: Identity | None = None
    group: str | None = None


def identity_of(machine: Machine, pid: int) -> Identity | None:
    """The process of this pid as it is now; None when there is none."""
    try:
        kin = read_kin(machine, pid)
    except (OSError, ValueError):
        return None
    return Identity(pid, kin.start) if kin.alive else None


def end_jobs(machine: Machine, jobs: Iterable[LeftJob], grace: float = GRACE) -> int:
    """End all processes of these jobs that still live; returns of how many jobs there were some.

    They are asked first, and killed after `grace` seconds. Nobody tells us of their end, so we look.
    """
    if not machine.has_proc():
        return 0  # a process cannot be told from another that has its number by now
    left = {job: herd for job in jobs if _lives(machine, job, herd := _herd_of(machine, job))}
    found = len(left)
    deadline = time.monotonic() + grace
    for herd in left.values():
        herd.tell(signal.SIGTERM)
        herd.tell(signal.SIGCONT)  # one that is stopped could not obey
    while left:
        for job in [job for job, herd in left.items() if not _lives(machine, job, herd)]:
            del left[job]
        if time.monotonic() >= deadline:
            for herd in left.values():
                herd.tell(signal.SIGKILL)
        time.sleep(_LOOK if left else 0.0)
    return found


def _herd_of(machine: Machine, job: LeftJob) -> Herd:
    members = Members(machine, job.shepherd, [job.main] if job.main is not None else [], group=job.group)
    return Herd(machine, job.shepherd.pid, with_root=False, members=members)


def _lives(machine: Machine, job: LeftJob, herd: Herd) -> bool:
    """A shepherd ends after its job."""
    return identity_of(machine, job.shepherd.pid) == job.shepherd or bool(herd.running())
