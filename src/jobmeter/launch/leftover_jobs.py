"""Ends jobs whose jobmeter was killed: processes below a shepherd, or without one if that was killed too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from typing import NamedTuple

from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, read_parentage
from jobmeter.launch.members import Members
from jobmeter.launch.signals import SignalTargets
from jobmeter.launch.supervisor import GRACE

_LOOK = 0.02


class LeftJob(NamedTuple):
    """How to find a job: by its shepherd or, if that was killed, by its main process and its cgroup."""

    shepherd: Identity
    main: Identity | None = None
    group: str | None = None


def identity_of(machine: Machine, pid: int) -> Identity | None:
    """The identity of the process that has this pid now; None if it has ended."""
    try:
        parentage = read_parentage(machine, pid)
    except (OSError, ValueError):
        return None
    return Identity(pid, parentage.start) if parentage.alive else None


def end_jobs(machine: Machine, jobs: Iterable[LeftJob], grace: float = GRACE) -> int:
    """End all processes of these jobs that still run; returns how many jobs had any.

    SIGTERM first, SIGKILL after `grace` seconds. They are not our children, so their end is polled.
    """
    if not machine.has_proc():
        return 0  # pids are reused: without start times it could be another process
    left = {job: processes for job in jobs if _lives(machine, job, processes := _processes_of(machine, job))}
    count = len(left)
    deadline = time.monotonic() + grace
    for processes in left.values():
        processes.send(signal.SIGTERM)
        processes.send(signal.SIGCONT)  # a stopped process does not handle SIGTERM
    while left:
        for job in [job for job, processes in left.items() if not _lives(machine, job, processes)]:
            del left[job]
        if time.monotonic() >= deadline:
            for processes in left.values():
                processes.send(signal.SIGKILL)
        time.sleep(_LOOK if left else 0.0)
    return count


class Adopted:
    """Orphans that became children of this process, a subreaper, since this object was created.

    A job whose shepherd was killed can leave a process without any other link to the job: the process is in a session
    of its own, and its parent ended before it was seen. The process still has the environment of the job.
    """

    def __init__(self, machine: Machine, variable: str) -> None:
        """`variable`: an environment variable that every job has."""
        self._machine = machine
        self._mark = f"{variable}=".encode()
        self._before = set(self._children())

    def end(self) -> int:
        """End the orphans and their descendants; returns how many orphans ran. Call it when no job runs any more."""
        orphans = [child for child in self._children() if child not in self._before and self._is_marked(child.pid)]
        return end_jobs(self._machine, [LeftJob(orphan, orphan) for orphan in orphans])

    def _children(self) -> list[Identity]:
        if not self._machine.has_proc():
            return []
        pids = [int(name) for name in os.listdir(self._machine.proc) if name.isdigit()]
        return [child for pid in pids if (child := self._child(pid)) is not None]

    def _child(self, pid: int) -> Identity | None:
        try:
            parentage = read_parentage(self._machine, pid)
        except (OSError, ValueError):
            return None
        is_child = parentage.alive and parentage.ppid == os.getpid()
        return Identity(pid, parentage.start) if is_child else None

    def _is_marked(self, pid: int) -> bool:
        try:
            with open(f"{self._machine.proc}/{pid}/environ", "rb") as file:
                return any(entry.startswith(self._mark) for entry in file.read().split(b"\0"))
        except OSError:
            return False  # it has ended, or became another user


def _processes_of(machine: Machine, job: LeftJob) -> SignalTargets:
    members = Members(machine, job.shepherd, [job.main] if job.main is not None else [], group=job.group)
    return SignalTargets(machine, job.shepherd.pid, with_root=False, members=members)


def _lives(machine: Machine, job: LeftJob, processes: SignalTargets) -> bool:
    """Whether the shepherd, which ends after its job, or a process of the job still runs."""
    return identity_of(machine, job.shepherd.pid) == job.shepherd or bool(processes.running())
