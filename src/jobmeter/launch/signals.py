"""Signals: to the whole job, and from jobmeter's own terminal or caller to the job."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.tree import Tree

if TYPE_CHECKING:
    from jobmeter.kernel.pslist import ListedTree
    from jobmeter.launch.members import Members

ENDING = frozenset(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)
FORWARDED = ENDING | {getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2", "SIGWINCH") if hasattr(signal, name)}
_SI_KERNEL = 0x80  # the terminal sent it, to the whole foreground group


class JobProcesses:
    """All processes of a job, to send them signals. Searches for them each time."""

    def __init__(self, machine: Machine, root: int, *, with_root: bool, members: Members | None = None) -> None:
        """The descendants of `root`, or `members` of a job without such a root."""
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
            with contextlib.suppress(NoData):  # `ps` failed: then as last listed
                self._tree.refresh()
            return self._tree.running_pids(with_root=self._with_root)

    def send(self, number: int) -> None:
        """Send a signal to every process, and to those forked meanwhile."""
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

    sigwaitinfo reports who sent a signal. One from the terminal has reached the job already, which
    is in the same foreground group, and must not reach it twice.
    """

    def __init__(self, receive: Callable[[int, bool], None], signals: frozenset[signal.Signals] = FORWARDED) -> None:
        self._receive = receive
        # What was ignored when we started (nohup) stays ignored, by us and by the job.
        self._signals = {n for n in signals if signal.getsignal(n) is not signal.SIG_IGN}
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        threading.Thread(target=self._run, name="jobmeter-signals", daemon=True).start()

    def _run(self) -> None:
        while True:
            number, from_terminal = self._next()
            try:
                self._receive(number, from_terminal)
            except OSError:
                continue  # no descriptor or memory to search for processes: the next signal may succeed

    def _next(self) -> tuple[int, bool]:
        if hasattr(signal, "sigwaitinfo"):
            info = signal.sigwaitinfo(self._signals)
            return info.si_signo, info.si_code == _SI_KERNEL
        return signal.sigwait(self._signals), False
