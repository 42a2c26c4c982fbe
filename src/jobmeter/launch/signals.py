"""Sends signals to all processes of a job, and forwards those that jobmeter gets from its terminal or caller."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable

from jobmeter.errors import LaunchError, NoData
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.tree import Tree
from jobmeter.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobmeter.kernel.pslist import ListedTree
    from jobmeter.launch.members import Members

ENDING = frozenset(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)
FORWARDED = ENDING | {getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2", "SIGWINCH") if hasattr(signal, name)}
_SI_KERNEL = 0x80  # the terminal sent it, to the whole foreground group

_SAME_CALL = 0.2
"""Seconds within which repeated signals count as one: `timeout` sends its signal to its child and to its group."""

_mask_before: set[signal.Signals | int] | None = None
"""The signal mask of this process before jobmeter blocked any signal; None if it blocked none."""


def block(signals: Iterable[signal.Signals]) -> None:
    """Block signals, so that a `Forwarder` receives them. Jobs are started with the mask from before."""
    global _mask_before
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    if _mask_before is None:
        _mask_before = {*before}


def mask_of_jobs() -> set[signal.Signals | int]:
    """The signals that are blocked in a job: those that were blocked in our caller."""
    return _mask_before if _mask_before is not None else {*signal.pthread_sigmask(signal.SIG_BLOCK, ())}


class SignalTargets:
    """All processes of a job, to send them signals. Searches for them each time."""

    def __init__(self, machine: Machine, root: int, *, with_root: bool, members: Members | None = None) -> None:
        """The descendants of `root`; `members` instead for a job that has no such root."""
        self._tree: Tree | ListedTree | Members
        if members is not None:
            self._tree = members
        elif machine.has_proc():
            self._tree = Tree(machine, root, keep_open=0)
        else:
            from jobmeter.kernel.pslist import ListedTree

            self._tree = ListedTree(root)
        self._with_root = with_root
        self._lock = threading.Lock()

    def running(self) -> list[int]:
        with self._lock:
            with contextlib.suppress(NoData):  # `ps` failed: use the last list
                self._tree.refresh()
            return self._tree.running_pids(with_root=self._with_root)

    def send(self, number: int) -> None:
        """Send a signal to every process, also to those that are forked while it is being sent."""
        signalled: set[int] = set()
        while remaining := [pid for pid in self.running() if pid not in signalled]:
            for pid in remaining:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            signalled.update(remaining)

    def close(self) -> None:
        self._tree.close()


class Forwarder:
    """Hands signals that jobmeter receives to `receive(number, from_terminal)`, in a thread of its own.

    sigwaitinfo reports who sent a signal. A signal from the terminal has already reached the job, which
    is in the same foreground process group, and must not be sent to it again.

    Once `exit_code` returns a number, the job has ended, and only its report is left to be written. That may block for
    ever, on a pipe that is not read or a terminal that is stopped. A second signal then ends this process, with that
    number as its exit code.
    """

    def __init__(
        self,
        receive: Callable[[int, bool], None],
        signals: frozenset[signal.Signals] = FORWARDED,
        *,
        exit_code: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Raises LaunchError if the thread cannot be started."""
        self._receive = receive
        self._exit_code = exit_code
        self._last_ending: float | None = None  # when a signal came that should end the job
        # A signal that was ignored when we started (nohup) stays ignored, by us and by the job.
        self._signals = {n for n in signals if signal.getsignal(n) is not signal.SIG_IGN}
        block(self._signals)
        try:
            threading.Thread(target=self._run, name="jobmeter-signals", daemon=True).start()
        except RuntimeError as error:
            raise LaunchError(f"no thread for signals to the job: {error}. The limit is `ulimit -u`.") from None

    def _run(self) -> None:
        while True:
            number, from_terminal = self._next()
            if number in ENDING:
                self._end_if_repeated(from_terminal)
            try:
                self._receive(number, from_terminal)
            except OSError:
                continue  # no descriptor or memory to search for processes: the next signal may succeed

    def _end_if_repeated(self, from_terminal: bool) -> None:
        now = time.monotonic()
        last, self._last_ending = self._last_ending, now
        if last is not None and (from_terminal or now - last > _SAME_CALL) and (code := self._exit_code()) is not None:
            os._exit(code)

    def _next(self) -> tuple[int, bool]:
        if hasattr(signal, "sigwaitinfo"):
            info = signal.sigwaitinfo(self._signals)
            return info.si_signo, info.si_code == _SI_KERNEL
        return signal.sigwait(self._signals), False
