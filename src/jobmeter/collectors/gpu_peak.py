"""The processes that held GPU memory when the job held most of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobmeter.collectors.job_processes import JobProcesses

if TYPE_CHECKING:
    from jobmeter.record.types import PeakEntry, PeakProcess

_HIGHER = 1.01
"""A new peak must be more than the last one times this."""
_MOST_PROCESSES = 8


class GpuPeak:
    """The highest amount of GPU memory so far, on all GPUs together."""

    def __init__(self, processes: JobProcesses) -> None:
        self._processes = processes
        self._bytes = 0
        self._monotonic = 0.0
        self._holders: list[PeakProcess] = []

    def update(self, held: Mapping[int, int], now: float) -> None:
        """Take the GPU memory that each process holds now."""
        total = sum(held.values())
        if total <= _HIGHER * self._bytes:
            return
        self._bytes, self._monotonic = total, now
        largest = sorted(held.items(), key=lambda item: -item[1])
        self._holders = [self._holder(pid, amount) for pid, amount in largest[:_MOST_PROCESSES]]
        if others := largest[_MOST_PROCESSES:]:
            amount = sum(each for _, each in others)
            self._holders.append({"processes": len(others), "cmd": f"{len(others)} more", "bytes": amount})

    def _holder(self, pid: int, amount: int) -> PeakProcess:
        return {"pid": pid, "cmd": self._processes.command(pid), "bytes": amount}

    def entries(self, started: float) -> list[PeakEntry]:
        """The peak for the record, with its time since `started`; empty if the job held nothing."""
        if not self._bytes:
            return []
        seconds = round(max(self._monotonic - started, 0.0), 3)
        return [{"kind": "gpu", "seconds": seconds, "bytes": self._bytes, "processes": self._holders}]
