"""What is requested after an amount that was not enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobmeter.analyse.size.need import NO_FEATURES, Need
from jobmeter.analyse.size.pool import Pool, Terms
from jobmeter.analyse.size.sizer import Sizer

AMOUNTS = st.floats(1.0, 1e13)


def sizer_of(amounts: list[float], seconds: float = 1.0, pool: Pool | None = None) -> Sizer:
    sizer = Sizer(pool)
    sizer.learn([Need(amount, seconds=seconds) for amount in amounts])
    return sizer


@given(st.lists(AMOUNTS, max_size=40), AMOUNTS, st.integers(1, 5), st.floats(0.0, 1e6), st.floats(0.0, 5e6))
def test_a_retry_always_requests_more(
    needs: list[float], amount: float, attempt: int, failure_cost: float, plus: float
) -> None:
    assert sizer_of(needs).retry(amount, NO_FEATURES, Terms(0.98, failure_cost, plus), attempt) > amount


def test_a_third_retry_doubles() -> None:
    assert 200.0 == sizer_of([90.0, 95.0, 100.0]).retry(100.0, NO_FEATURES, Terms(), 3)


def test_a_short_job_among_long_ones_goes_further_at_once() -> None:
    needs = [90.0, 95.0, 100.0, 105.0, 110.0, 98.0]
    alone = sizer_of(needs).retry(130.0, NO_FEATURES, Terms(), 1)
    pool = Pool()
    sizer_of([1000.0] * 6, seconds=3600.0, pool=pool)
    assert alone < sizer_of(needs, pool=pool).retry(130.0, NO_FEATURES, Terms(), 1) <= 4 * 130.0
