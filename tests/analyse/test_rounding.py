"""Amounts that people would write."""

from __future__ import annotations

import pytest

from jobmeter.analyse.rounding import round_memory, round_runtime

MIB = 2**20
GIB = 2**30


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (1, 8 * MIB),
        (16.3 * MIB, 17 * MIB),
        (255.5 * MIB, 256 * MIB),
        (GIB, GIB),
        (1.2 * GIB, 1232 * MIB),
        (8 * GIB, 8 * GIB),
        (8.1 * GIB, 8.125 * GIB),
    ],
)
def test_memory_is_rounded_up_to_steps_that_grow(amount: float, expected: float) -> None:
    assert expected == round_memory(amount)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.1, 5), (59.2, 60), (120, 120), (601, 610), (7200, 7200), (7201, 7260), (600.0000000001, 600)],
)
def test_time_is_rounded_up_to_steps_that_grow(seconds: float, expected: float) -> None:
    assert expected == round_runtime(seconds)
