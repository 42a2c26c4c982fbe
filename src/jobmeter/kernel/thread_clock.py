"""The clock of one thread's CPU time, which any thread of the process may read."""

from __future__ import annotations

import sys

_OF_A_THREAD, _SCHEDULER = 4, 2  # CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of linux/posix-timers.h


def thread_clock(thread: int) -> int | None:
    """The clock id, for `time.clock_gettime`, of the thread with this kernel id; None on systems without such clocks.

    `time.pthread_getcpuclockid` makes the same number, but crashes for a thread that has ended or a greenlet.
    Reading the clock of a thread that has ended raises OSError.
    """
    return (~thread << 3) | _OF_A_THREAD | _SCHEDULER if sys.platform == "linux" else None
