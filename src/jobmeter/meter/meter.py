"""The meter: one thread that samples any number of jobs, each when it is due."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time

from jobmeter.meter.watch import Watch

_IDLE = 2.0
"""Seconds without a job after which the thread ends; the next job starts another."""


class Meter:
    """Starts its thread with the first job, and ends it when there are none."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._queue: list[tuple[float, int, Watch]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None

    def add(self, watch: Watch) -> None:
        if self._process != os.getpid():
            self._begin()  # forked: the thread stayed with the parent, and so did its jobs
        with self._changed:
            heapq.heappush(self._queue, (watch.due(), next(self._order), watch))
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jobmeter", daemon=True)
                self._thread.start()

    def remove(self, watch: Watch) -> None:
        """Stop sampling it; a sample in progress is finished first."""
        with self._changed:
            self._queue = [entry for entry in self._queue if entry[2] is not watch]
            heapq.heapify(self._queue)

    def _run(self) -> None:
        before = self.cpu_seconds
        while (watch := self._next()) is not None:
            watch.tick()
            self.cpu_seconds = before + time.thread_time()
            if not watch.finished:
                with self._changed:
                    heapq.heappush(self._queue, (watch.due(), next(self._order), watch))

    def _next(self) -> Watch | None:
        """Wait for the watch that is due first; None when there was none for a while."""
        with self._changed:
            while True:
                delay = self._queue[0][0] - time.monotonic() if self._queue else _IDLE
                if self._queue and delay <= 0:
                    return heapq.heappop(self._queue)[2]
                if not self._changed.wait(delay) and not self._queue:
                    self._thread = None
                    return None
