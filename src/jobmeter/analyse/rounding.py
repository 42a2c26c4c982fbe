"""Amounts that people would write: rounded up, never down, and finely where they are small."""

from __future__ import annotations

from math import ceil, frexp

_MIB = 2**20
LEAST_MEMORY = 8 * _MIB
LEAST_RUNTIME = 5.0
"""Seconds. A machine that is busy with something else can take this long for a job that does nothing."""
_STEPS = 128
"""A step of more than 1 MiB is at most the amount divided by this."""


def memory_step(amount: float) -> int:
    """A power of two: 1 MiB below 256 MiB, and above it no more than 1/128 of the amount."""
    return max((1 << frexp(max(amount, 1.0))[1] - 1) // _STEPS, _MIB)


def round_memory(amount: float) -> int:
    """Bytes, rounded up to a full step, and at least `LEAST_MEMORY`."""
    return max(_up(amount, memory_step(amount)), LEAST_MEMORY)


def round_runtime(seconds: float) -> float:
    """Round up to full seconds until 10 minutes, 10 seconds until 2 hours, minutes above; at least `LEAST_RUNTIME`."""
    step = 1 if seconds <= 600 else 10 if seconds <= 7200 else 60
    return max(float(_up(seconds, step)), LEAST_RUNTIME)


def _up(amount: float, step: int) -> int:
    # An amount that exceeds a full step only by a rounding error counts as that step.
    return ceil(round(amount / step, 9)) * step
