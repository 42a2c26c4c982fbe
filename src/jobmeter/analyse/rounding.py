"""Amounts that people would write: rounded up, never down, and finely where they are small."""

from __future__ import annotations

from math import ceil, frexp

_MIB = 2**20
LEAST_MEMORY = 8 * _MIB
LEAST_RUNTIME = 5.0
"""Seconds. What a machine that is busy with something else can take for nothing at all."""
_STEPS = 128
"""A step is at most this part of the amount."""


def memory_step(amount: float) -> int:
    """A power of two: 1 MiB below 256 MiB, and above it no more than 1/128 of the amount."""
    return max((1 << frexp(max(amount, 1.0))[1] - 1) // _STEPS, _MIB)


def round_memory(amount: float) -> int:
    """Bytes, up to a full step and at least `LEAST_MEMORY`."""
    return max(_up(amount, memory_step(amount)), LEAST_MEMORY)


def round_runtime(seconds: float) -> float:
    """Up to full seconds below 10 minutes, 10 seconds below 2 hours, minutes above; at least `LEAST_RUNTIME`."""
    step = 1 if seconds <= 600 else 10 if seconds <= 7200 else 60
    return max(float(_up(seconds, step)), LEAST_RUNTIME)


def _up(amount: float, step: int) -> int:
    # A hair above a full step is that step, reckoned in floating point.
    return ceil(round(amount / step, 9)) * step
