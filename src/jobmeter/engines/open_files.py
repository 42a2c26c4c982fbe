"""The limit of open files: the runner raises its own to what the system allows; its jobs get the former limit."""

from __future__ import annotations

import contextlib
import resource
import sys

_ENOUGH = 65536
_FOR_A_JOB = 23
"""Descriptors of one job: pipes, logs, its main process, and files of /proc, of its cgroup and of its perf events."""
_FOR_THE_REST = 700
"""All other descriptors: at most 600 files of /proc, shared by the processes of all jobs; the store, libraries."""


class Descriptors:
    """Raises this process's limit of open files, until `restore`."""

    def __init__(self) -> None:
        self._original_limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft, hard = (_ENOUGH if limit == resource.RLIM_INFINITY else limit for limit in self._original_limits)
        self._limit = soft
        # Other systems have no prlimit to reset the limit of jobs, and some programs close every descriptor up to it.
        if sys.platform == "linux" and soft < min(hard, _ENOUGH):
            with contextlib.suppress(OSError, ValueError):  # a sandbox forbids it
                resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, _ENOUGH), self._original_limits[1]))
                self._limit = min(hard, _ENOUGH)

    @property
    def jobs(self) -> int:
        """How many jobs at a time the limit suffices for."""
        return max((self._limit - _FOR_THE_REST) // _FOR_A_JOB, 1)

    def restore_limit(self, pid: int) -> None:
        """Reset the limit of a job's process, which has not executed its program yet, to the former one."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, self._original_limits)

    def restore(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, self._original_limits)
