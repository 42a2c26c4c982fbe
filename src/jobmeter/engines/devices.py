"""Which GPUs of a machine are whose."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence


class Devices:
    """Gives GPUs to jobs. How many there are is minded by whoever starts the tasks."""

    def __init__(self, visible: str) -> None:
        """`visible` is our own CUDA_VISIBLE_DEVICES: of those that we were given, jobs get some."""
        self._names = [name for name in visible.split(",") if name]
        self._free: list[int] = []
        self._following = 0
        self._lock = threading.Lock()

    def take(self, count: int) -> list[int]:
        """The lowest numbers that are nobody's."""
        with self._lock:
            while len(self._free) < count:
                heapq.heappush(self._free, self._following)
                self._following += 1
            return [heapq.heappop(self._free) for _ in range(count)]

    def give_back(self, devices: Sequence[int]) -> None:
        with self._lock:
            for device in devices:
                heapq.heappush(self._free, device)

    def name(self, device: int) -> str:
        """What CUDA calls it."""
        return self._names[device] if device < len(self._names) else str(device)
