"""The meter: one thread that samples any number of jobs, each when it is due."""

from __future__ import annotations

import heapq
import itertools
import threading
import time

from jobmeter.meter.watch import Watch


class Meter:
    """Starts its thread with the first job; sleeps while no job is due."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: list[tuple[float, int, Watch]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self.cpu_seconds = 0.0

    def add(self, watch: Watch) -> None:
        with self._changed:
            heapq.heappush(self._queue, (watch.due(), next(self._order), watch))
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jobmeter", daemon=True)
                self._thread.start()

    def remove(self, watch: Watch) -> None:
        """Sample it no more; a sample under way is finished first."""
        with self._changed:
            self._queue = [entry for entry in self._queue if entry[2] is not watch]
            heapq.heapify(self._queue)

    def _run(self) -> None:
        while True:
            watch = self._next()
            watch.tick(time.monotonic())
            self.cpu_seconds = time.thread_time()
            if not watch.finished:
                with self._changed:
                    heapq.heappush(self._queue, (watch.due(), next(self._order), watch))

    def _next(self) -> Watch:
        """Wait for the watch that is due first."""
        with self._changed:
            while True:
                delay = self._queue[0][0] - time.monotonic() if self._queue else None
                if delay is not None and delay <= 0:
                    return heapq.heappop(self._queue)[2]
                self._changed.wait(delay)
