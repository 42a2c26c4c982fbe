"""The points that a residual is widened to."""

from __future__ import annotations

import pytest

from jobmeter.analyse.size.choice import _student_points
from jobmeter.analyse.student import quantile


@pytest.mark.parametrize("count", [2, 3, 8, 24])
def test_points_are_the_middles_of_equal_parts_of_students_distribution(count: int) -> None:
    expected = [0.0 if 2 * index + 1 == count else quantile((index + 0.5) / count, 3.0) for index in range(count)]
    assert pytest.approx(expected, rel=1e-9) == list(_student_points(count))
