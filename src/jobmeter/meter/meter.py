"""The meter: one thread that samples any number of jobs, each when it is due."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time

from jobmeter.kernel.thread_clock import thread_clock
from jobmeter.light_typing import Protocol

_IDLE = 2.0
"""Seconds without a job after which the thread ends; the next job starts another."""


class Due(Protocol):
    """What the meter calls when it is due: the watch of a job, or `OpenBlocks` for blocks that are not sampled yet."""

    finished: bool  # it needs no further call

    def due(self) -> float:
        """The monotonic time at which `tick` has something to do."""

    def tick(self) -> None: ...


class Meter:
    """Starts its thread with the first job, and ends it when there are none."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        self.thread_id: int | None = None  # of the sampling thread, as the kernel numbers it; None when there is none
        self._thread_clock: int | None = None
        self._before = 0.0  # CPU time of earlier sampling threads
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        # Locked until the queue changes. The thread waits for it all the time, and a lock is cheaper than a Condition.
        self._unchanged = threading.Lock()
        self._unchanged.acquire()
        self._queue: list[tuple[float, int, Due]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0
        self._starter = 0  # the thread that started the sampling thread
        self.thread_id = self._thread_clock = None

    def add(self, watch: Due) -> None:
        if self._process != os.getpid():
            self._begin()  # forked: the thread stayed with the parent, and so did its jobs
        with self._lock:
            due = watch.due()
            heapq.heappush(self._queue, (due, next(self._order), watch))
            if self._thread is None:
                self._starter = threading.get_native_id()
                self._thread = threading.Thread(target=self._run, name="jobmeter", daemon=True)
                self._thread.start()
                self._note_thread(self._thread.native_id)
            elif due < self._wakes_at and self._unchanged.locked():  # else the thread looks at the queue in time
                self._unchanged.release()

    def _note_thread(self, thread_id: int | None) -> None:
        if thread_id is not None and thread_id != self._starter:
            self.thread_id, self._thread_clock = thread_id, thread_clock(thread_id)

    def used_seconds(self) -> float:
        """CPU time of the sampling threads until now."""
        clock = self._thread_clock
        if clock is None:
            return self.cpu_seconds
        try:
            return self._before + time.clock_gettime(clock)
        except OSError:
            return self.cpu_seconds  # the thread has just ended

    def remove(self, watch: Due) -> None:
        """Stop sampling it. Does not wait for a sample in progress: `Watch.finish` and `Watch.close` do."""
        with self._lock:
            self._queue = [entry for entry in self._queue if entry[2] is not watch]
            heapq.heapify(self._queue)

    def _run(self) -> None:
        before = self._before = self.cpu_seconds
        is_thread = threading.get_native_id() != self._starter  # with gevent it may run in the same thread
        while (watch := self._next()) is not None:
            began = time.thread_time()
            watch.tick()
            now = time.thread_time()
            self.cpu_seconds = before + now if is_thread else self.cpu_seconds + now - began
            if not watch.finished:
                with self._lock:
                    heapq.heappush(self._queue, (watch.due(), next(self._order), watch))

    def _next(self) -> Due | None:
        """Wait for the watch that is due first; None when there was none for a while."""
        while True:
            with self._lock:
                delay = self._queue[0][0] - time.monotonic() if self._queue else _IDLE
                if self._queue and delay <= 0:
                    return heapq.heappop(self._queue)[2]
                self._wakes_at = time.monotonic() + delay
            changed = self._unchanged.acquire(timeout=delay)
            with self._lock:
                self._wakes_at = 0.0
                if not changed and not self._queue:
                    self._thread = self._thread_clock = self.thread_id = None
                    return None


PROCESS_METER = Meter()
"""One sampling thread for all that this process measures."""
