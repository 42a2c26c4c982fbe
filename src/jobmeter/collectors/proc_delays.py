"""How long the job waited: for a CPU, as the scheduler counts it per thread; for a disk, as far as readings show it."""

from __future__ import annotations

import time

from jobmeter.collectors.allowance import Allowance
from jobmeter.kernel import procfs
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.procfs import Identity, Stat
from jobmeter.kernel.tree import Process

_SECONDS_PER_THREAD = 15e-6


class RunDelays:
    """The time that threads were ready to run and had no CPU, summed; threads that ended count as last read."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._allowance = Allowance(share=0.001, at_first=0.002)
        self._threads: dict[Identity, dict[int, int]] = {}  # thread → nanoseconds, as last read
        self._stats: dict[Identity, Stat] = {}  # as of that reading: a process that did nothing since did not wait
        self._counts = False  # whether any thread could be read
        self._ended = 0
        self._base = 0

    def begin(self, present: list[Process]) -> None:
        """Count from now on."""
        self.update(present)
        self._base = self._total()

    def update(self, alive: list[Process]) -> float | None:
        """Seconds until now; None if the kernel does not count them, or nothing could be read yet."""
        changed = [process for process in alive if self._stats.get(process.identity) is not process.stat]
        for process in changed:
            if not self._allowance.covers(process.stat.threads * _SECONDS_PER_THREAD):
                break
            with self._allowance:
                self._read(process)
        if len(self._threads) > 2 * len(alive) + 8:
            self._forget({process.identity for process in alive})
        return (self._total() - self._base) / 1e9 if self._counts else None

    def _read(self, process: Process) -> None:
        pid, before = process.identity.pid, self._threads.get(process.identity, {})
        now: dict[int, int] = {}
        try:
            threads = [pid] if process.stat.threads == 1 else procfs.thread_ids(self._machine, pid)
        except OSError:
            return  # it has ended
        for thread in threads:
            try:
                now[thread] = procfs.read_run_delay(self._machine, pid, thread)
            except (OSError, ValueError):
                continue  # it has ended, or this kernel does not count
        self._counts = self._counts or bool(now)
        self._ended += sum(waited for thread, waited in before.items() if thread not in now)
        self._threads[process.identity], self._stats[process.identity] = now, process.stat

    def _forget(self, alive: set[Identity]) -> None:
        for identity in [identity for identity in self._threads if identity not in alive]:
            self._ended += sum(self._threads.pop(identity).values())
            self._stats.pop(identity, None)

    def _total(self) -> int:
        return self._ended + sum(sum(threads.values()) for threads in self._threads.values())


class DiskWaits:
    """The time in which a process waited for a disk and none of the job ran, as far as samples and peeks show it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._waits = False
        self._looked_at = time.monotonic()

    def update(self, counted: list[Process]) -> None:
        """Take the present states of the processes; they are applied to the time since the last look."""
        self._waits = False
        for process in counted:
            state = process.stat.state
            if state == "R":
                self._waits = False
                break
            self._waits = self._waits or state == "D"
        self._pass()

    def nothing_ran(self) -> None:
        """Note that no process of the job ran since the last look: the states are unchanged."""
        self._pass()

    def _pass(self) -> None:
        now = time.monotonic()
        if self._waits:
            self.seconds += now - self._looked_at
        self._looked_at = now
