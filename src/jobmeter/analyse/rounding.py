"""Amounts that people would write: rounded up, never down."""

from __future__ import annotations

from math import ceil

_MIB = 2**20
_GIB = 2**30
LEAST_MEMORY = 16 * _MIB
LEAST_RUNTIME = 5.0
"""Seconds. What a machine that is busy with something else can take for nothing at all."""


def memory_step(amount: float) -> int:
    """Below 1 GiB 16 MiB, below 8 GiB 128 MiB, above half a GiB."""
    if amount <= _GIB:
        return 16 * _MIB
    return 128 * _MIB if amount <= 8 * _GIB else _GIB // 2


def round_memory(amount: float) -> int:
    """Bytes, up to a full step and at least `LEAST_MEMORY`."""
    return max(_up(amount, memory_step(amount)), LEAST_MEMORY)


def round_runtime(seconds: float) -> float:
    """Up to full seconds below 2 minutes, minutes below 2 hours, 5 minutes above; at least `LEAST_RUNTIME`."""
    step = 1 if seconds <= 120 else 60 if seconds <= 7200 else 300
    return max(float(_up(seconds, step)), LEAST_RUNTIME)


def _up(amount: float, step: int) -> int:
    # A hair above a full step is that step, reckoned in floating point.
    return ceil(round(amount / step, 9)) * step
