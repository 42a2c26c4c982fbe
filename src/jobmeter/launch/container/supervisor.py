"""Follows a started container to its end: time limit, signals, and a container runtime that may become unreachable."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable

from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine, read_text
from jobmeter.kernel.pidfd import PidFd
from jobmeter.launch.container.client import RequestRefused, RuntimeUnreachable, is_missing
from jobmeter.launch.container.runtime import ContainerRuntime, ContainerState
from jobmeter.launch.signals import ENDING
from jobmeter.launch.supervisor import GRACE
from jobmeter.model import Status

_SAME_CALL = 1.0
_KILL_AGAIN = 0.5
_RUNTIME_PATIENCE = 30.0
"""Seconds without an answer of the container runtime after which the outcome is `lost`."""
_LONGEST_WAIT = 86400.0
_LOOK_FOR_EXEC = 0.05


class ContainerSupervisor:
    """`wait` runs in one thread; `end` and `receive` may be called from any.

    `pid` is the container's first process, as numbered here, or 0: then only the container runtime reports its end.
    """

    def __init__(
        self,
        runtime: ContainerRuntime,
        container: str,
        machine: Machine,
        *,
        pid: int,
        time_limit: float | None,
        heeds_sigterm: bool,
        at_exit: Callable[[], None],
    ) -> None:
        self.wait_status: int | None = None
        self.state: ContainerState | None = None
        self.ended_by: Status | None = None
        self.ended_at: float | None = None  # by this process's clock
        self._runtime = runtime
        self._container = container
        self._machine = machine
        self._pid = pid
        self._heeds_sigterm = heeds_sigterm
        self._at_exit = at_exit
        self._lock = threading.RLock()
        self._time_limit_ends = None if time_limit is None else time.monotonic() + time_limit
        self._kill_at: float | None = None
        self._forwarded: dict[int, float] = {}  # signal → when it was last forwarded
        self._replaced_signal: int | None = None  # the signal in place of which SIGKILL was sent
        self._sent_to: tuple[int, tuple[int, int]] | None = None  # a signal, and the program that got it
        self._sent_at = self._check_at = 0.0
        self._killed = False
        self._ended = threading.Event()
        self.abandoned = False
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        self._pidfd = self._open_pidfd()

    def _open_pidfd(self) -> PidFd | None:
        try:
            if self._pid:
                return PidFd(self._pid)
        except NoData:
            if not os.path.exists(f"{self._machine.proc}/{self._pid}"):
                self._ended.set()
                return None
        threading.Thread(target=self._wait_for_runtime, name="jobmeter-container", daemon=True).start()
        return None

    def _wait_for_runtime(self) -> None:
        """Without a pidfd: wait until the container runtime reports the end, or is unreachable for too long."""
        gone_since: float | None = None
        while not self._closed:
            try:
                self._runtime.wait(self._container)
                break
            except (RequestRefused, RuntimeUnreachable) as error:
                if is_missing(error):
                    break
                gone_since = gone_since or time.monotonic()
                if time.monotonic() - gone_since > _RUNTIME_PATIENCE:
                    break
                time.sleep(0.2)
        self._ended.set()
        self._wake()

    def wait(self) -> None:
        """Return when the container has ended and its state is known, or the container runtime is unreachable for long.

        Also returns after `abandon`, when the container keeps running.
        """
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        if self._pidfd is not None:
            poll.register(self._pidfd, select.POLLIN)
        while not self._ended.is_set():
            if self.abandoned:
                return
            ready = [descriptor for descriptor, _ in poll.poll(self._milliseconds_to_deadline())]
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            if self._pidfd is not None and self._pidfd.fileno() in ready:
                self._ended.set()
            else:
                self._meet_deadlines()
        self.ended_at = time.monotonic()
        self._at_exit()
        self._learn_state()
        self._judge_signals()

    def _milliseconds_to_deadline(self) -> float | None:
        """Milliseconds until the next deadline."""
        check_at = None if self._sent_to is None else self._check_at
        deadlines = [t for t in (self._time_limit_ends, self._kill_at, check_at) if t is not None]
        if not deadlines:
            return None
        return min(max(min(deadlines) - time.monotonic(), 0.0), _LONGEST_WAIT) * 1000

    def _meet_deadlines(self) -> None:
        now = time.monotonic()
        if self._time_limit_ends is not None and now >= self._time_limit_ends:
            self._time_limit_ends = None
            self.end(Status.TIMEOUT)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill()
        with self._lock:
            if self._sent_to is not None and now >= self._check_at:
                self._send_after_exec(*self._sent_to)

    def _learn_state(self) -> None:
        """Poll the container runtime until it reports the end, which takes a while if it restarts."""
        deadline = time.monotonic() + _RUNTIME_PATIENCE
        while time.monotonic() < deadline:
            try:
                state = self._runtime.state(self._container)
                if not state.running and state.status != "stopping":
                    self.state = state
                    break
            except (RequestRefused, RuntimeUnreachable) as error:
                if is_missing(error):
                    break  # it was removed
                time.sleep(0.2)
            time.sleep(0.01)
        status = self._pidfd.wait_status() if self._pidfd is not None else None
        if status is None and self.state is not None:
            # Container runtimes report a signal as 128 + its number; a program may exit with such a code too.
            code = self.state.exit_code
            status = code - 128 if 128 < code < 128 + signal.NSIG else code << 8
        self.wait_status = status

    def _judge_signals(self) -> None:
        with self._lock:
            status = self.wait_status
            if status is None:
                return
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            if number == signal.SIGKILL and self._replaced_signal is not None:
                number = self.wait_status = self._replaced_signal
            recently = self._forwarded and time.monotonic() - max(self._forwarded.values()) < GRACE
            if number in self._forwarded or recently:
                self.ended_by = self.ended_by or Status.CANCELLED

    def end(self, reason: Status, *, at_once: bool = False) -> None:
        """End the container, because of `reason`; `at_once`: by SIGKILL, without SIGTERM and a grace period."""
        with self._lock:
            self.ended_by = self.ended_by or reason
            if at_once or not self._heeds_sigterm:
                self._kill()
            else:
                self._kill_at = time.monotonic() + GRACE
                self._send_ending(signal.SIGTERM)
            self._wake()

    def abandon(self) -> None:
        """Stop following it; `wait` returns."""
        self.abandoned = True
        self._wake()

    def receive(self, number: int, from_terminal: bool) -> None:
        """Forward a signal to the first process, also from the terminal: a container is not attached to the terminal.

        A container that ignores a signal which should end it is killed when the signal comes again.
        """
        with self._lock:
            if number == getattr(signal, "SIGWINCH", None):
                return  # it has no terminal
            if number not in ENDING:
                self._send(number)
                return
            now = time.monotonic()
            before, self._forwarded[number] = self._forwarded.get(number), now
            if before is not None and now - before > _SAME_CALL:
                self.end(Status.CANCELLED, at_once=True)
            else:
                self._send_ending(number)

    def nobody_reads(self) -> None:
        """End the container as SIGPIPE would end a command: its output has no reader any more."""
        with self._lock:
            self._replaced_signal = self._replaced_signal or signal.SIGPIPE
            # Do not kill it here: the caller must read on, as Docker handles no signal while it waits for a reader.
            self._kill_at = time.monotonic()
            self._wake()

    def _send_ending(self, number: int) -> None:
        """Send a signal that would end a command.

        The kernel drops signals that the first process of a container does not handle. If such a signal would
        have ended a command, the container is killed.
        """
        program = self._program()  # before check and signal: it may execute another program at any moment
        if self._leaves_to_default(number):
            self._replaced_signal = self._replaced_signal or number
            self._kill()
        else:
            self._send(number)
            if program is not None:
                self._sent_to, self._sent_at = (number, program), time.monotonic()
                self._check_at = self._sent_at + _LOOK_FOR_EXEC
                self._wake()

    def _send_after_exec(self, number: int, program: tuple[int, int]) -> None:
        """Send a signal again, to the command, if the container runtime's own program got it, before the exec."""
        self._check_at = time.monotonic() + _LOOK_FOR_EXEC
        if (present := self._program()) is None or self._check_at > self._sent_at + GRACE:
            self._sent_to = None
        elif present != program:
            self._sent_to = None
            self._send_ending(number)

    def _program(self) -> tuple[int, int] | None:
        """Device and inode of the program that the first process runs; None if they cannot be read."""
        try:
            program = os.stat(f"{self._machine.proc}/{self._pid}/exe")
        except OSError:
            return None
        return program.st_dev, program.st_ino

    def _kill(self) -> None:
        """Send SIGKILL, and again until the container has ended: a paused one ends only once it is resumed."""
        self._send(signal.SIGKILL)
        if self._killed and not self._ended.is_set():
            with contextlib.suppress(RuntimeUnreachable, RequestRefused):
                self._runtime.resume(self._container)
        self._killed = True
        self._kill_at = time.monotonic() + _KILL_AGAIN
        self._wake()

    def _leaves_to_default(self, number: int) -> bool:
        """Whether the first process neither handles, ignores nor blocks the signal, nor waits for it (tini, dumb-init).

        A signal that a process is waiting for does not show as blocked; `wchan`, which root may read, shows the wait.
        """
        if not self._pid:
            return False
        folder = f"{self._machine.proc}/{self._pid}"
        try:
            lines = read_text(f"{folder}/status").splitlines()
            if "sigtimedwait" in read_text(f"{folder}/wchan"):
                return False
        except OSError:
            return False
        masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk:", "SigIgn:", "SigCgt:"))]
        return bool(masks) and not any(mask >> (number - 1) & 1 for mask in masks)

    def _send(self, number: int) -> None:
        if self._ended.is_set() or self._closed:
            return
        try:
            if self._pidfd is not None:
                # Not through the container runtime, which may answer only after it has removed the cgroup.
                self._pidfd.send(number)
                return
        except OSError:
            pass  # we may not signal this process: the container runtime may
        with contextlib.suppress(RuntimeUnreachable, RequestRefused):
            self._runtime.kill(self._container, number)

    def _wake(self) -> None:
        with self._lock:
            if not self._closed:
                os.write(self._wake_write, b"w")

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._pidfd is not None:
                self._pidfd.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
