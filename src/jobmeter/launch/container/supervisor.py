"""Sees a started container through to its end: its limit of time, signals, and an engine that may go away."""

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
from jobmeter.kernel.pidfd import Held
from jobmeter.launch.container.client import EngineGone, EngineRefused, is_missing
from jobmeter.launch.container.runtime import Engine, State
from jobmeter.launch.signals import ENDING
from jobmeter.launch.supervisor import GRACE

_SAME_CALL = 1.0
_KILL_AGAIN = 0.5
_ENGINE_PATIENCE = 30.0
"""Seconds that an engine may be away before a container that it cannot tell of is lost."""
_LONGEST_WAIT = 86400.0


class ContainerSupervisor:
    """`wait` runs in one thread; `end` and `receive` may be called from any.

    `pid` is the container's first process as it is seen here, or 0: then only the engine tells of its end.
    """

    def __init__(
        self,
        engine: Engine,
        container: str,
        machine: Machine,
        *,
        pid: int,
        runtime: float | None,
        at_exit: Callable[[], None],
    ) -> None:
        self.wait_status: int | None = None
        self.state: State | None = None
        self.ended_by: str | None = None
        self.ended_at: float | None = None  # by this process's clock
        self._engine = engine
        self._container = container
        self._machine = machine
        self._pid = pid
        self._at_exit = at_exit
        self._lock = threading.RLock()
        self._runtime_ends = None if runtime is None else time.monotonic() + runtime
        self._kill_at: float | None = None
        self._asked: dict[int, float] = {}  # signal → when it was last handed on
        self._stands_for: int | None = None  # the signal that SIGKILL was sent in place of
        self._killed = False
        self._ended = threading.Event()
        self.abandoned = False
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        self._held = self._hold()

    def _hold(self) -> Held | None:
        try:
            if self._pid:
                return Held(self._pid)
        except NoData:
            if not os.path.exists(f"{self._machine.proc}/{self._pid}"):
                self._ended.set()
                return None
        threading.Thread(target=self._wait_for_engine, name="jobmeter-engine", daemon=True).start()
        return None

    def _wait_for_engine(self) -> None:
        """Where the process cannot be held: the engine tells of the end, unless it is away for long."""
        gone_since: float | None = None
        while not self._closed:
            try:
                self._engine.wait(self._container)
                break
            except (EngineRefused, EngineGone) as error:
                if is_missing(error):
                    break
                gone_since = gone_since or time.monotonic()
                if time.monotonic() - gone_since > _ENGINE_PATIENCE:
                    break
                time.sleep(0.2)
        self._ended.set()
        self._wake()

    def wait(self) -> None:
        """Return when the container has ended, and what its engine tells of it is known; or the engine is lost.

        Also when it is `abandoned`, and goes on.
        """
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        if self._held is not None:
            poll.register(self._held, select.POLLIN)
        while not self._ended.is_set():
            if self.abandoned:
                return
            ready = [descriptor for descriptor, _ in poll.poll(self._patience())]
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            if self._held is not None and self._held.fileno() in ready:
                self._ended.set()
            else:
                self._meet_deadlines()
        self.ended_at = time.monotonic()
        self._at_exit()
        self._learn_state()
        self._judge_signals()

    def _patience(self) -> float | None:
        """Milliseconds until the next deadline."""
        deadlines = [t for t in (self._runtime_ends, self._kill_at) if t is not None]
        if not deadlines:
            return None
        return min(max(min(deadlines) - time.monotonic(), 0.0), _LONGEST_WAIT) * 1000

    def _meet_deadlines(self) -> None:
        now = time.monotonic()
        if self._runtime_ends is not None and now >= self._runtime_ends:
            self._runtime_ends = None
            self.end("timeout")
        if self._kill_at is not None and now >= self._kill_at:
            self._kill()

    def _learn_state(self) -> None:
        """Ask the engine until it has noticed the end itself. One that restarts takes a while."""
        deadline = time.monotonic() + _ENGINE_PATIENCE
        while time.monotonic() < deadline:
            try:
                state = self._engine.state(self._container)
                if not state.running and state.status != "stopping":
                    self.state = state
                    break
            except (EngineRefused, EngineGone) as error:
                if is_missing(error):
                    break  # someone removed it
                time.sleep(0.2)
            time.sleep(0.01)
        told = self._held.wait_status() if self._held is not None else None
        if told is None and self.state is not None:
            # 128 and a signal is how engines tell of a signal; a program may exit with such a code too.
            code = self.state.exit_code
            told = code - 128 if 128 < code < 128 + signal.NSIG else code << 8
        self.wait_status = told

    def _judge_signals(self) -> None:
        with self._lock:
            status = self.wait_status
            if status is None:
                return
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            if number == signal.SIGKILL and self._stands_for is not None:
                number = self.wait_status = self._stands_for
            recently = self._asked and time.monotonic() - max(self._asked.values()) < GRACE
            if number in self._asked or recently:
                self.ended_by = self.ended_by or "cancelled"

    def end(self, reason: str, *, at_once: bool = False) -> None:
        """End the container, because of `reason`; `at_once` spares the farewell."""
        with self._lock:
            self.ended_by = self.ended_by or reason
            if at_once:
                self._kill()
            else:
                self._kill_at = time.monotonic() + GRACE
                self._tell(signal.SIGTERM)
            self._wake()

    def abandon(self) -> None:
        """Leave the container to itself; `wait` returns."""
        self.abandoned = True
        self._wake()

    def receive(self, number: int, from_terminal: bool) -> None:
        """Hand a signal on to the first process, from the terminal too, to which a container does not belong.

        A container that ignores one which asks it to end is killed when that is sent again.
        """
        with self._lock:
            if number == getattr(signal, "SIGWINCH", None):
                return  # it has no terminal
            if number not in ENDING:
                self._send(number)
                return
            now = time.monotonic()
            before, self._asked[number] = self._asked.get(number), now
            if before is not None and now - before > _SAME_CALL:
                self.end("cancelled", at_once=True)
            else:
                self._tell(number)

    def nobody_reads(self) -> None:
        """Its output has no reader any more: it ends as a command would that writes there."""
        with self._lock:
            self._stands_for = self._stands_for or signal.SIGPIPE
            # Not here: whoever calls reads the output, without which an engine does not get to the signal.
            self._kill_at = time.monotonic()
            self._wake()

    def _tell(self, number: int) -> None:
        """Send a signal that would end a command.

        The first process of a container is spared the signals it does not handle, alone of all
        processes. What would have ended as a command ends as a container too.
        """
        if self._leaves_to_default(number):
            self._stands_for = self._stands_for or number
            self._kill()
        else:
            self._send(number)

    def _kill(self) -> None:
        """Kill it, and again until it has ended: one that is paused ends only when its engine lets it go on."""
        self._send(signal.SIGKILL)
        if self._killed and not self._ended.is_set():
            with contextlib.suppress(EngineGone, EngineRefused):
                self._engine.resume(self._container)
        self._killed = True
        self._kill_at = time.monotonic() + _KILL_AGAIN
        self._wake()

    def _leaves_to_default(self, number: int) -> bool:
        """Whether it neither handles, ignores nor blocks the signal, nor waits for it, as tini and dumb-init do.

        What a process waits for just now does not show as blocked; where it waits, root may see.
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
            if self._held is not None:
                # Not through the engine, which may answer only after it has tidied up, and its accounts with it.
                self._held.send(number)
                return
        except OSError:
            pass  # not our process: its engine may
        with contextlib.suppress(EngineGone, EngineRefused):
            self._engine.kill(self._container, number)

    def _wake(self) -> None:
        with self._lock:
            if not self._closed:
                os.write(self._wake_write, b"w")

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._held is not None:
                self._held.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
