"""How many files may be open at a time: for the runner what the system allows, for its jobs what it was given."""

from __future__ import annotations

import contextlib
import resource
import sys

_ENOUGH = 65536
_FOR_A_JOB = 23
"""Pipes, logs, its main process, and files of /proc, of its cgroup and of its perf events."""
_FOR_THE_REST = 700
"""At most 600 files of /proc that the processes of all jobs share, the store, libraries."""


class Descriptors:
    """Raises this process's limit until it is restored."""

    def __init__(self) -> None:
        self._given = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft, hard = (_ENOUGH if limit == resource.RLIM_INFINITY else limit for limit in self._given)
        self._limit = soft
        # Elsewhere the jobs could not be given theirs back, and some programs close all they might have.
        if sys.platform == "linux" and soft < min(hard, _ENOUGH):
            with contextlib.suppress(OSError, ValueError):  # a sandbox forbids it
                resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, _ENOUGH), self._given[1]))
                self._limit = min(hard, _ENOUGH)

    @property
    def jobs(self) -> int:
        """How many jobs at a time they suffice for."""
        return max((self._limit - _FOR_THE_REST) // _FOR_A_JOB, 1)

    def give_back(self, pid: int) -> None:
        """Let a process that has not begun have the limit that we were given."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, self._given)

    def restore(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, self._given)
