"""Detects that processes of a job left the cgroup they were started in: a process with permission can move them."""

from __future__ import annotations

import os

from jobmeter.kernel.cgroup.files import read_pids
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, is_ending, read_cgroup
from jobmeter.kernel.tree import Process


class Membership:
    """Checks, at each update, whether the processes of a tree are still in the job's group."""

    def __init__(self, machine: Machine, directories: dict[str, str]) -> None:
        """`directories` are those of the job's group, by controller: see `Group.directories`."""
        self._machine = machine
        self._directories = directories
        self._below: dict[str, set[Identity]] = {}  # in a group that the job made below its own: still counted
        self.left: set[str] = set()
        """Controllers whose group some process has left; `""` is the unified hierarchy."""

    def update(self, alive: list[Process]) -> None:
        for controller, path in self._directories.items():
            if controller in self.left:
                continue
            try:
                inside = set(read_pids(path))
            except OSError:
                continue
            elsewhere = [process.identity for process in alive if process.identity.pid not in inside]
            before = self._below.get(controller, set())
            below = self._below[controller] = before.intersection(elsewhere)
            for identity in elsewhere:
                if identity not in below:
                    self._look(identity, controller, os.path.basename(path))

    def _look(self, identity: Identity, controller: str, name: str) -> None:
        try:
            path = read_cgroup(self._machine, identity.pid).get(controller)
        except (OSError, ValueError):
            return  # it has ended
        # v1 shows a process that is about to end in the root group.
        if path is None or is_ending(self._machine, identity.pid):
            return
        if f"/{name}/" in f"{path}/":
            self._below[controller].add(identity)
        else:
            self.left.add(controller)
