"""The clock of one thread's CPU time, which any thread of the process may read."""

from __future__ import annotations

import sys

_OF_A_THREAD, _SCHEDULER = 4, 2  # CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of linux/posix-timers.h


def thread_clock(thread: int) -> int | None:
    """For `time.clock_gettime`, of a thread as the kernel numbers it; None on systems without such clocks.

    `time.pthread_getcpuclockid` makes the same number, and crashes for a thread that has ended or a greenlet.
    Reading the clock of a thread that has ended is an OSError.
    """
    return (~thread << 3) | _OF_A_THREAD | _SCHEDULER if sys.platform == "linux" else None
