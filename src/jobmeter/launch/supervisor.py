"""Follows a launched job to its end: limits, signals, orphans."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable

from jobmeter.kernel.machine import Machine
from jobmeter.launch import protocol
from jobmeter.launch.signals import ENDING, SignalTargets
from jobmeter.launch.spawn import LaunchedJob
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Status

if TYPE_CHECKING:
    from jobmeter.launch.members import Members
    from jobmeter.launch.takeover import Takeover

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL, when jobmeter ends a job."""
_LATE = 0.1
"""Seconds after the end of a job in which jobmeter may still notice the signal that ended it, if it got that too."""
_STRAGGLE = 0.1
"""Seconds that processes may outlive the main process before they count as left running."""
_KILL_AGAIN = 0.05
_SAME_CALL = 1.0
"""Seconds within which repeated signals count as one: `timeout` sends its signal to its child and to its group."""


class Supervisor:
    """`wait` runs in one thread; `end` and `receive` may be called from any."""

    def __init__(
        self,
        launched: LaunchedJob,
        machine: Machine,
        *,
        orphans: str,
        heeds_sigterm: bool,
        time_limit: float | None,
        before_reaping: Callable[[], None],
        find_members: Callable[[], Members],
    ) -> None:
        """`find_members` is for a job whose shepherd was killed: its processes no longer form a tree."""
        self.wait_status: int | None = None
        self.main_ended = False  # also when its exit code is unknown
        self.shepherd_killed = False
        self.reaped: protocol.Message | None = None
        self.ended_by: Status | None = None
        self.left_running = 0
        self._launched = launched
        self._machine = machine
        self._orphans = orphans
        self._heeds_sigterm = heeds_sigterm
        self._before_reaping = before_reaping
        self._find_members = find_members
        self._source: LaunchedJob | Takeover = launched
        self._lock = threading.RLock()
        self._processes: SignalTargets | None = None
        self._time_limit_ends = None if time_limit is None else time.monotonic() + time_limit
        self._orphans_due: float | None = None
        self._kill_at: float | None = None
        self._forwarded: dict[int, float] = {}  # signal → when it was last forwarded
        self._closed = False

    def wait(self) -> None:
        """Return when every process has ended, or the main process has and the others are left running."""
        while True:
            try:
                message = self._source.next_message(self._seconds_to_deadline())
            except EOFError:
                if self._shepherd_was_killed():
                    self._take_over()
                    continue
                self._end_unadopted()
                return
            if message is None:
                if self._deadline_passed():
                    return
            elif message.kind == protocol.EXITED:
                try:
                    self._before_reaping()
                finally:
                    self._launched.may_be_reaped()
            elif message.kind == protocol.REAPED:
                # One sum, however many orphans there were.
                self.reaped = protocol.add(self.reaped, message)
                if message.pid == self._launched.main:
                    self._note_main_ended(message.value)
            elif message.kind == protocol.GONE:
                self._note_main_ended(None if message.value == protocol.UNKNOWN else message.value)

    def _note_main_ended(self, status: int | None) -> None:
        now = time.monotonic()
        with self._lock:
            self.main_ended, self.wait_status = True, status
            self._time_limit_ends = None
            self._orphans_due = now + _STRAGGLE
            if self._was_killed_by_ours() or (self._forwarded and now - max(self._forwarded.values()) < GRACE):
                self.ended_by = self.ended_by or Status.CANCELLED

    def await_own_signal(self) -> None:
        """Wait a moment for the signal that killed the job: jobmeter may have got it too, and not handled it yet."""
        until = time.monotonic() + _LATE
        while self.ended_by is None and self._ending_signal() is not None and time.monotonic() < until:
            time.sleep(_LATE / 20)

    def _was_killed_by_ours(self) -> bool:
        """Whether a signal that jobmeter got too killed the job."""
        number = self._ending_signal()
        return number is not None and (number in self._forwarded or number in signal.sigpending())

    def _ending_signal(self) -> int | None:
        """The signal that killed the job, if it is one of `ENDING`; else None."""
        if self.wait_status is None or not os.WIFSIGNALED(self.wait_status):
            return None
        number = os.WTERMSIG(self.wait_status)
        return number if number in ENDING else None

    def _shepherd_was_killed(self) -> bool:
        return not self.shepherd_killed and self._launched.shepherd_was_killed(main_reaped=self.main_ended)

    def _take_over(self) -> None:
        """Follow the job without its shepherd, which was killed."""
        from jobmeter.launch.takeover import Takeover  # hardly ever needed

        with self._lock:
            self.shepherd_killed = True
            processes, members = self._without_shepherd()
            self._source = Takeover(self._launched, members, processes, main_ended=self.main_ended)
            if self._processes is not None:
                self._processes.close()
            self._processes = processes
            # Signals that were sent after the shepherd ended, to a tree without its root, may have been lost.
            now = time.monotonic()
            for number in [number for number, when in self._forwarded.items() if now - when < _SAME_CALL]:
                self._send(number)
            if self._kill_at is not None:
                self._send(signal.SIGTERM)
                self._send(signal.SIGCONT)

    def _without_shepherd(self) -> tuple[SignalTargets, Members | None]:
        if self._machine.has_proc():
            members = self._find_members()
            return SignalTargets(self._machine, 0, with_root=False, members=members), members
        # Without /proc, orphans cannot be found.
        return SignalTargets(self._machine, self._launched.main, with_root=True), None

    def _seconds_to_deadline(self) -> float | None:
        deadlines = [t for t in (self._time_limit_ends, self._orphans_due, self._kill_at) if t is not None]
        return min(deadlines) - time.monotonic() if deadlines else None

    def _deadline_passed(self) -> bool:
        """Do what is due; True when there is nothing more to wait for."""
        now = time.monotonic()
        if self._time_limit_ends is not None and now >= self._time_limit_ends:
            self._time_limit_ends = None
            self.end(Status.TIMEOUT)
        if self._kill_at is not None and now >= self._kill_at:
            self._send(signal.SIGKILL)
            self._kill_at = now + _KILL_AGAIN
        if self._orphans_due is not None and now >= self._orphans_due:
            self._orphans_due = None
            return self._handle_orphans()
        return False

    def _handle_orphans(self) -> bool:
        """Leave, await or end the processes that outlive the main process; True if some are left running."""
        with self._lock:
            if self.ended_by is None and self._orphans == "leave":
                self.left_running = len(self._job_processes().running())
                return self.left_running > 0
            if self._orphans != "wait" or self.ended_by is not None:
                self._send(signal.SIGTERM)
                self._kill_at = self._kill_at or time.monotonic() + GRACE
            return False

    def _end_unadopted(self) -> None:
        """Wait for orphans, and kill them when due: without a subreaper, they can outlive the shepherd's children."""
        if self.ended_by is None or self._machine.has_proc():
            return
        while self._job_processes().running():
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._send(signal.SIGKILL)
            time.sleep(_KILL_AGAIN)

    def end(self, reason: Status, *, at_once: bool = False) -> None:
        """End the whole job, because of `reason`; `at_once`: by SIGKILL, without SIGTERM and a grace period."""
        with self._lock:
            if self._closed:
                return
            self.ended_by = self.ended_by or reason
            at_once = at_once or not self._heeds_sigterm
            if at_once:
                self._send(signal.SIGKILL)
            else:
                self._send(signal.SIGTERM)
                self._send(signal.SIGCONT)  # a stopped process does not handle SIGTERM
            self._kill_at = time.monotonic() + (_KILL_AGAIN if at_once else GRACE)
            self._launched.wake()

    def receive(self, number: int, from_terminal: bool) -> None:
        """Forward a signal. A signal that should end the job goes to all of its processes.

        Signals from the terminal (Ctrl-C) have already reached the job. A job that ignores any other is
        killed when the same signal comes again, after more than `_SAME_CALL` seconds.
        """
        with self._lock:
            if self._closed:
                return
            if number not in ENDING:
                if not from_terminal and not self.main_ended:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(self._launched.main, number)
                return
            now = time.monotonic()
            before, self._forwarded[number] = self._forwarded.get(number), now
            if self.main_ended and self._was_killed_by_ours():
                self.ended_by = self.ended_by or Status.CANCELLED
            if from_terminal:
                return
            if before is not None and now - before > _SAME_CALL:
                self.end(Status.CANCELLED, at_once=True)
            else:
                self._send(number)

    def _send(self, number: int) -> None:
        with self._lock:
            self._job_processes().send(number)

    def _job_processes(self) -> SignalTargets:
        if self._processes is None:
            try:
                self._processes = SignalTargets(self._machine, self._launched.shepherd, with_root=False)
            except (OSError, ValueError):  # the shepherd was killed just now
                self._processes, _ = self._without_shepherd()
        return self._processes

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._processes is not None:
                self._processes.close()
                self._processes = None
