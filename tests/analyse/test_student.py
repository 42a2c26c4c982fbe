"""Student's t against values from printed tables and from scipy."""

from __future__ import annotations

import math

import pytest

from jobmeter.analyse.student import beta, cdf, quantile


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    [
        (0.95, 1, 6.313751515),
        (0.975, 2, 4.302652730),
        (0.99, 1, 31.820515954),
        (0.99, 4, 3.746947388),
        (0.995, 9, 3.249835542),
        (0.99, 30, 2.457261542),
        (0.999, 100, 3.173739493),
        (0.5, 7, 0.0),
        (0.05, 10, -1.812461123),
    ],
)
def test_quantiles_are_those_of_the_tables(level: float, freedom: float, expected: float) -> None:
    assert pytest.approx(expected, rel=1e-8, abs=1e-12) == quantile(level, freedom)


@pytest.mark.parametrize("freedom", [0.5, 1.0, 1.7, 3.0, 17.3, 250.0, 1e6])
@pytest.mark.parametrize("level", [1e-6, 0.01, 0.3, 0.5, 0.77, 0.99, 0.999999])
def test_the_quantile_undoes_the_distribution(level: float, freedom: float) -> None:
    assert pytest.approx(level, rel=1e-9) == cdf(quantile(level, freedom), freedom)


def test_one_degree_of_freedom_is_cauchys_distribution() -> None:
    for value in (-30.0, -1.0, 0.0, 0.3, 2.0, 1e5):
        assert pytest.approx(0.5 + math.atan(value) / math.pi, abs=1e-14) == cdf(value, 1)


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert pytest.approx(0.97500210485, abs=1e-6) == cdf(1.96, 1e7)


def test_the_ends_are_sure() -> None:
    assert (0.0, 1.0) == (cdf(-math.inf, 3), cdf(math.inf, 3))
    assert (0.0, 1.0) == (beta(0.0, 2, 3), beta(1.0, 2, 3))


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, -0.1])
def test_a_level_outside_of_0_to_1_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        quantile(level, 5)


def test_no_degrees_of_freedom_are_refused() -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        cdf(1.0, 0)
