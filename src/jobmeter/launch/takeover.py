"""Follows a job whose shepherd was killed to its end, and reports what the shepherd would have reported."""

from __future__ import annotations

import os
import time

from jobmeter.launch import protocol
from jobmeter.launch.members import Members
from jobmeter.launch.signals import SignalTargets
from jobmeter.launch.spawn import LaunchedJob

_GAP = 0.05
"""Seconds between two looks at the job's processes: the end of those that are not our children is not reported."""
_SHARE = 0.05
"""Largest share of the time that looking may take."""
_CONFIRM = 3
"""Looks in a row that must find no process. One look can miss a process that forks and ends while /proc is listed."""


class Takeover:
    """Replaces the shepherd: `next_message` is used like that of `LaunchedJob`.

    For processes that became our children, wait4 reports what they used. For others, only their end is known.
    """

    def __init__(
        self, launched: LaunchedJob, members: Members | None, processes: SignalTargets, *, main_ended: bool
    ) -> None:
        launched.leave_shepherd()
        self._launched = launched
        self._members = members
        self._processes = processes
        self._main_ended = main_ended
        self._main_to_reap = False
        self._next_look = 0.0
        self._running: list[int] = []
        self._empty_searches = 0

    def next_message(self, timeout: float | None = None) -> protocol.Message | None:
        """The next event of the job; None if there was none for a while, at most `timeout` seconds.

        Raises EOFError once every process has ended.
        """
        if self._main_to_reap:
            self._main_to_reap, self._main_ended = False, True
            return self._launched.reap_main()
        if time.monotonic() >= self._next_look:
            self._look()
        if self._members is not None:
            for pid in self._members.ended_children:
                if pid != self._launched.main and (message := _reap(pid)) is not None:
                    return message
        if not self._main_ended and self._launched.main_has_ended(self._running):
            self._main_to_reap = True
            return protocol.Message(protocol.EXITED, self._launched.main)
        if self._main_ended and self._empty_searches >= _CONFIRM:
            raise EOFError
        gap = max(self._next_look - time.monotonic(), 0.0)
        self._launched.pause(gap if timeout is None else min(gap, max(timeout, 0.0)))
        return None

    def _look(self) -> None:
        began = time.monotonic()
        self._running = self._processes.running()
        self._empty_searches = 0 if self._running else self._empty_searches + 1
        now = time.monotonic()
        self._next_look = now + max(_GAP if self._running else _GAP / 5, (now - began) / _SHARE)


def _reap(pid: int) -> protocol.Message | None:
    """Wait for a child that has ended; None when it was waited for already."""
    try:
        reaped, status, used = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return protocol.reaped(reaped, status, used) if reaped else None
