"""Estimates what perf events cost a job: the kernel handles them whenever a task of it begins, ends or gets a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from jobmeter.collectors.allowance import Allowance
from jobmeter.collectors.contract import Target
from jobmeter.kernel.hostfs import read_context_switches, read_highest_pid, read_tasks
from jobmeter.kernel.procfs import Identity, read_schedstat, thread_ids
from jobmeter.kernel.tree import Process, Tree

_OF_A_TASK = 5e-6
"""Seconds that an inherited event adds to the life of a process or thread: 3 to 10 µs, measured with Linux 6.18."""
_OF_A_SWITCH = 0.25e-6
"""Seconds that an inherited event adds to a context switch."""
_MOST, _MOST_AT_ONCE = 0.01, 0.025
"""The highest cost, in CPUs per CPU that the job uses (at least one): half of what measuring may cost a job. `_MOST`
must be exceeded twice in a row, `_MOST_AT_ONCE` only once: a program may start a hundred threads once, and none after
that."""
_FIRST_GAP, _LONGEST_GAP = 0.1, 1.0
"""Limits, in seconds, of the time between two estimates; between these it is a tenth of the job's age."""
_FEWEST_FAULTS = 17
"""Page faults of a process that is forked and ends at once, seen with a C program. With an exec there are 50."""
_MOST_THREADS = 500
_STAT_FILE = 20e-6
"""Seconds that it takes to read one stat file of /proc."""


_Key = TypeVar("_Key")


class _Counts(NamedTuple):
    """Counters that show how many tasks began and how often they got a CPU."""

    monotonic: float
    faults: dict[Identity, int]  # page faults of the children that each process waited for
    runs: dict[int, int]  # thread → how often it got a CPU


class PerfCost:
    """Estimates, from time to time, what events that all processes of a job inherit cost the job.

    It first estimates for the whole machine, from one or two small files: a quiet machine has no busy job. Only if that
    is too much, it reads the processes of the job, because other processes may be the busy ones.
    """

    def __init__(self, target: Target, clock: Callable[[], float] = time.monotonic) -> None:
        self._target = target
        self._machine = target.machine
        self._clock = clock
        self._began = self._since = clock()
        self._next = self._began + _FIRST_GAP
        self._cpu_nanoseconds = 0
        self._newest, self._host_switches = self._read_host()[1:]
        self._allowance = Allowance(share=0.002, at_first=0.02)
        self._was_high = False
        self._tree: Tree | None = None
        # A job that is held before its exec has not run yet; for a running job, counting starts at the first look.
        self._before = None if target.root_is_job else _Counts(self._began, {}, {})

    def _read_host(self) -> tuple[int, int, int]:
        """Tasks, number of the newest task, and context switches of the machine; all 0 if it does not report them."""
        try:
            return *read_tasks(self._machine), read_context_switches(self._machine)
        except (OSError, ValueError):
            return 0, 0, 0

    def too_high(self, cpu_nanoseconds: int) -> str | None:
        """Why the events should be stopped, or None. `cpu_nanoseconds` is what the job has used so far."""
        now = self._clock()
        if now < self._next or not self._allowance.covers():
            return None
        self._next = now + min(max(_FIRST_GAP, (now - self._began) / 10), _LONGEST_GAP)
        with self._allowance:
            try:
                return self._estimate(now, cpu_nanoseconds)
            except (OSError, ValueError):
                return None  # the job has just ended, or this kernel does not report it

    def _estimate(self, now: float, cpu_nanoseconds: int) -> str | None:
        span = now - self._since
        present, newest, host_switches = self._read_host()
        tasks = self._pids_allocated(newest) / span
        switches = max(host_switches - self._host_switches, 0) / span
        cpus = max((cpu_nanoseconds - self._cpu_nanoseconds) / 1e9 / span, 1.0)
        self._since, self._newest, self._host_switches = now, newest, host_switches
        self._cpu_nanoseconds = cpu_nanoseconds
        cost = 0.0
        if _cost(tasks, switches) > _MOST * cpus and (own := self._look_at_job(present)) is not None:
            tasks, switches = min(tasks, own[0]), min(switches, own[1])
            cost = _cost(tasks, switches) / cpus
        was_high, self._was_high = self._was_high, cost > _MOST
        if cost <= (_MOST if was_high else _MOST_AT_ONCE):
            return None
        # Both are upper bounds: if the job switches while others fork, it is not known which of the two it does.
        cause = f"up to {tasks:,.0f} new processes and threads and {switches:,.0f} context switches a second"
        return f"stopped after {now - self._began:.2f} s: its events would slow the job down ({cause})"

    def _pids_allocated(self, newest: int) -> int:
        """How many tasks began on the machine since the last estimate."""
        if newest >= self._newest:
            return newest - self._newest
        return newest + max(read_highest_pid(self._machine) - self._newest, 0)

    def _look_at_job(self, tasks_of_machine: int) -> tuple[float, float] | None:
        """Upper bounds, per second: tasks of the job that began, and times they got a CPU; None if not known yet."""
        if self._tree is None:
            # The first time, every process of the machine is read to find its parent.
            if not self._allowance.covers(tasks_of_machine * _STAT_FILE):
                return None
            self._tree = Tree(self._machine, self._target.root, keep_open=0)
        self._tree.refresh()
        processes = [self._tree.root, *self._tree.members.values()]
        before, now = self._before, self._count(processes)
        self._before = now
        if before is None:
            return None
        span = now.monotonic - before.monotonic
        runs = _growth(before.runs, now.runs) / span
        # The page faults of a process are added to the parent that waits for it; a thread that waits for another thread
        # gets a CPU again. Tasks that are not waited for do not show, and the events stay: nothing else counts them.
        return _growth(before.faults, now.faults) / _FEWEST_FAULTS / span + runs, runs

    def _count(self, processes: list[Process]) -> _Counts:
        faults = {p.identity: p.stat.children_minor_faults for p in processes}
        runs: dict[int, int] = {}
        for process in processes:
            pid = process.identity.pid
            try:
                threads = [pid] if process.stat.threads == 1 else thread_ids(self._machine, pid)
                for thread in threads[: _MOST_THREADS - len(runs)]:
                    runs[thread] = read_schedstat(self._machine, pid, thread)
            except (OSError, ValueError):
                continue  # it has just ended, or this kernel has no such file
        return _Counts(self._clock(), faults, runs)


def _cost(tasks: float, switches: float) -> float:
    """The cost, in seconds per second, of so many tasks and switches per second."""
    return tasks * _OF_A_TASK + switches * _OF_A_SWITCH


def _growth(before: dict[_Key, int], now: dict[_Key, int]) -> int:
    """The sum of what each count grew by; a new one counts in full."""
    return sum(max(count - before.get(key, 0), 0) for key, count in now.items())
