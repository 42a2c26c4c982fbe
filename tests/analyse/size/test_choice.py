"""The points that residuals are widened to, and the margins of least cost."""

from __future__ import annotations

from math import exp, log

import pytest

from jobmeter.analyse.size.choice import Price, Residual, _student_points, choose_margin, choose_retry, failing_above
from jobmeter.analyse.student import quantile


@pytest.mark.parametrize("count", [2, 3, 8, 24])
@pytest.mark.parametrize("freedom", [3, 11, 60])
def test_points_are_the_middles_of_equal_parts_of_students_distribution(count: int, freedom: int) -> None:
    expected = [0.0 if 2 * index + 1 == count else quantile((index + 0.5) / count, freedom) for index in range(count)]
    assert pytest.approx(expected, rel=0.02) == list(_student_points(count, freedom))


def residuals(*factors: float) -> list[Residual]:
    """Of runs that needed so many times the prediction, which was 1 for a second."""
    return [Residual(log(factor), 1.0, factor) for factor in factors]


def test_a_dearer_failure_gives_a_larger_margin_with_fewer_failures() -> None:
    runs = residuals(*(1 + 0.01 * (index % 10) for index in range(40)))
    cheap, dear = (choose_margin(runs, Price(failure, 0.03)) for failure in (0.1, 100.0))
    assert cheap.distance < dear.distance
    assert cheap.failing > dear.failing


def test_what_fails_above_a_margin_is_what_was_expected_of_it_and_more_above_a_smaller_one() -> None:
    runs = residuals(*(1 + 0.03 * (index % 7) for index in range(20)))
    margin = choose_margin(runs, Price(5.0, 0.03))
    assert margin.failing == pytest.approx(failing_above(runs, margin.spread, margin.distance))
    assert margin.failing < failing_above(runs, margin.spread, margin.distance / 2) < 1


def test_more_equal_runs_are_a_reason_for_a_smaller_margin() -> None:
    few, many = (choose_margin(residuals(*[0.95, 1.0, 1.05] * times), Price(1.0, 0.03)) for times in (2, 20))
    assert many.distance < few.distance


def test_a_retry_goes_to_the_outliers_of_the_past_when_a_failure_is_dear() -> None:
    runs = residuals(*[1.0] * 40, 3.0)
    assert exp(choose_retry(runs, Price(1000.0, 0.01), 0.01, above=log(1.1)) or 0.0) == pytest.approx(3.0, rel=0.15)


def test_of_runs_beyond_all_that_may_come_nothing_is_known() -> None:
    assert choose_retry(residuals(1.0, 1.1, 0.9), Price(1.0, 0.03), 0.03, above=log(100)) is None
