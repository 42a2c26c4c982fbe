"""Thinning: fewer points, no peak lost."""

from __future__ import annotations

import random

import pytest

from jobmeter.analyse.thinning import thin


def test_few_points_all_stay() -> None:
    values = [3.0, 1.0, 2.0]
    assert [0, 1, 2] == thin(values, values, 10)


def test_no_points_stay_none() -> None:
    assert [] == thin([], [], 10)


def test_every_single_peak_of_a_flat_line_is_kept() -> None:
    peaks = set(range(137, 300_000, 4_999))
    values = [100.0 if index in peaks else 1.0 for index in range(300_000)]
    kept = thin(values, values, 2_000)
    assert peaks <= set(kept)
    assert len(kept) <= 2_000


def test_every_trough_is_kept() -> None:
    values = [5.0] * 100_000
    values[54_321] = 0.0
    assert 54_321 in thin(values, values, 500)


@pytest.mark.parametrize("most", [100, 999, 2_000])
def test_no_stretch_as_wide_as_a_pixel_looks_different(most: int) -> None:
    chance = random.Random(1)
    high = [chance.expovariate(1) for _ in range(50_000)]
    low = [value / 2 for value in high]
    kept = thin(low, high, most)
    assert kept == sorted(set(kept))
    assert len(kept) <= most
    stretches = (most - 2) // 2
    for number in range(stretches):
        stretch = range(50_000 * number // stretches, 50_000 * (number + 1) // stretches)
        inside = [index for index in kept if index in stretch]
        assert max(high[index] for index in stretch) == max(high[index] for index in inside)
        assert min(low[index] for index in stretch) == min(low[index] for index in inside)


def test_first_and_last_point_stay() -> None:
    values = [float(index % 7) for index in range(10_000)]
    kept = thin(values, values, 50)
    assert (0, 9_999) == (kept[0], kept[-1])


def test_a_gap_stays_a_gap_and_the_peak_beside_it_stays() -> None:
    values: list[float | None] = [1.0] * 10_000
    values[5_000:5_010] = [None] * 10
    values[5_011] = 9.0
    kept = thin(values, values, 100)
    assert any(values[index] is None for index in kept)
    assert 5_011 in kept
