"""Finds which of the processes that a driver lists belong to the job."""

from __future__ import annotations

import os
from collections.abc import Iterable

from jobmeter.collectors.contract import Target
from jobmeter.kernel.procfs import Identity, read_cmdline, read_environment, read_inner_pid, read_stat

_DEEPEST = 1000


class JobProcesses:
    """Checks single pids, by their chain of parents: cheap if a driver lists few."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._machine = target.machine
        self._answers: dict[Identity, bool] = {}

    def of(self, pids: Iterable[int]) -> set[int]:
        """Those of the pids that belong to the job, numbered as they were given."""
        owned, unknown = set(), []
        for pid in pids:
            if not os.path.exists(f"{self._machine.proc}/{pid}"):
                unknown.append(pid)
            elif self._owns(pid):
                owned.add(pid)
        return owned | self._in_containers(unknown)

    def _owns(self, pid: int) -> bool:
        try:
            stat = read_stat(self._machine, pid)
        except (OSError, ValueError):
            return False  # it has just ended
        identity = Identity(pid, stat.start)
        if identity not in self._answers:
            self._answers[identity] = self._descends(pid, stat.ppid) or self._is_in_group(pid)
        return self._answers[identity]

    def _descends(self, pid: int, parent: int) -> bool:
        if pid == self._target.root:
            return self._target.root_is_job
        for _ in range(_DEEPEST):
            if parent in (self._target.root, self._target.main):
                return True
            if parent <= 1:
                return False
            try:
                parent = read_stat(self._machine, parent).ppid
            except (OSError, ValueError):
                return False
        return False

    def _is_in_group(self, pid: int) -> bool:
        return self._target.group is not None and pid in self._target.group.processes()

    def _in_containers(self, pids: list[int]) -> set[int]:
        """Those of the pids that processes of the job have in their own pid namespace: some drivers list those."""
        if not pids or self._target.group is None:
            return set()
        inner = {read_inner_pid(self._machine, pid) for pid in self._target.group.processes()}
        return set(pids) & inner

    def command(self, pid: int) -> str:
        """The command line of a process; `process PID` if it has ended, or the pid is known only inside a container."""
        try:
            stat = read_stat(self._machine, pid)
            return read_cmdline(self._machine, pid, stat.comm, self._target.redaction.words)
        except (OSError, ValueError):
            return f"process {pid}"

    def variable(self, *names: str) -> str | None:
        """The value of the first of these variables that the main process was started with; None if it has none."""
        try:
            environment = read_environment(self._machine, self._target.main)
        except OSError:
            return None  # it has ended, or is another user's
        return next((environment[name] for name in names if name in environment), None)
