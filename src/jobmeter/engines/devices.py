"""Assigns the GPUs of a machine to jobs."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence


class Devices:
    """Reserves GPUs for jobs. The caller makes sure that no more GPUs are taken than exist."""

    def __init__(self, visible: str) -> None:
        """`visible` is CUDA_VISIBLE_DEVICES of this process: jobs get GPUs of that list."""
        self._names = [name for name in visible.split(",") if name]
        self._free: list[int] = []
        self._following = 0
        self._lock = threading.Lock()

    def acquire(self, count: int) -> list[int]:
        """Reserve `count` GPUs: the lowest free numbers."""
        with self._lock:
            while len(self._free) < count:
                heapq.heappush(self._free, self._following)
                self._following += 1
            return [heapq.heappop(self._free) for _ in range(count)]

    def release(self, devices: Sequence[int]) -> None:
        with self._lock:
            for device in devices:
                heapq.heappush(self._free, device)

    def name(self, device: int) -> str:
        """The name of the GPU in CUDA_VISIBLE_DEVICES."""
        return self._names[device] if device < len(self._names) else str(device)
