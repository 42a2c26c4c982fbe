"""The processes of a job whose shepherd may have been killed, so that they no longer form a tree."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from jobmeter.kernel.cgroup.files import read_pids
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, Parentage, read_parentage


class Members:
    """The processes of the job, searched again at each `refresh`. A process once found is a member until it ends.

    Members are:

    - The processes found before (at first `identities`), and their descendants.
    - Children of the shepherd, while it lives.
    - Children of `adopter`, a subreaper that serves this job alone.
    - Processes in the job's cgroup (`group`, its directory).
    - Processes in the session that the shepherd created, if it created one.
    """

    def __init__(
        self,
        machine: Machine,
        shepherd: Identity,
        identities: Iterable[Identity],
        *,
        group: str | None = None,
        adopter: int | None = None,
        helpers: Iterable[int] = (),
    ) -> None:
        """`helpers` are children of `adopter` that are not the job's."""
        self._machine = machine
        self._shepherd = shepherd
        self._identities = set(identities)
        self._group = group
        self._adopter = adopter
        self._not_ours = {shepherd.pid, os.getpid(), *helpers}
        self._session_is_ours = False
        self._present: dict[int, Parentage] = {}
        self.ended_children: list[int] = []  # children of this process, to be waited for

    def refresh(self) -> None:
        present = self._processes()
        members = {
            identity.pid: parentage
            for identity in self._identities
            if (parentage := present.get(identity.pid)) and parentage.start == identity.start
        }
        parents = self._parents(present)
        session = self._session(present, members)
        grouped = self._grouped()
        # A process that is older than the shepherd is not the job's.
        others = {
            pid: parentage
            for pid, parentage in present.items()
            if pid not in members and self._may_be_ours(pid, parentage)
        }
        grown = True
        while grown:
            grown = False
            for pid, parentage in list(others.items()):
                if (
                    pid in grouped
                    or parentage.ppid in members
                    or parentage.ppid in parents
                    or parentage.session == session
                ):
                    members[pid] = others.pop(pid)
                    grown = True
        self._present = members
        self._identities = {Identity(pid, parentage.start) for pid, parentage in members.items()}
        self.ended_children = [
            pid for pid, parentage in members.items() if not parentage.alive and parentage.ppid == os.getpid()
        ]

    def _processes(self) -> dict[int, Parentage]:
        present = {}
        for name in os.listdir(self._machine.proc):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError):
                    present[int(name)] = read_parentage(self._machine, int(name))
        return present

    def _parents(self, present: dict[int, Parentage]) -> set[int]:
        shepherd = present.get(self._shepherd.pid)
        ours = {self._shepherd.pid} if shepherd is not None and shepherd.start == self._shepherd.start else set()
        return ours if self._adopter is None else {*ours, self._adopter}

    def _session(self, present: dict[int, Parentage], members: dict[int, Parentage]) -> int:
        """The id of the shepherd's session; -1 if another session may have this id by now.

        The kernel gives no new process the number of an existing session. So the session is the job's once a process of
        the job was found in it, until another process has this number as its pid.
        """
        number = self._shepherd.pid
        leader = present.get(number)
        if leader is not None:
            self._session_is_ours = leader.start == self._shepherd.start
        elif any(parentage.session == number for parentage in members.values()):
            self._session_is_ours = True
        return number if self._session_is_ours else -1

    def _grouped(self) -> set[int]:
        if self._group is not None:
            with contextlib.suppress(OSError):  # the job could not enter its cgroup, or the cgroup was removed
                return set(read_pids(self._group))
        return set()

    def _may_be_ours(self, pid: int, parentage: Parentage) -> bool:
        return parentage.start >= self._shepherd.start and pid not in self._not_ours

    def running_pids(self, *, with_root: bool) -> list[int]:
        """The processes that can still run, as of the last refresh; the shepherd only if it is in `identities`."""
        return [pid for pid, parentage in self._present.items() if parentage.alive]

    def close(self) -> None:
        """Do nothing: only a `Tree`, which has the same methods, has files to close."""
