"""Predictions, against histories of which the distribution is known."""

from __future__ import annotations

import math
import random

import pytest

from jobmeter.analyse.prediction import HALF_LIFE, Need, Prediction, predict, recency, weighted_quantile


def history(values: list[float]) -> Prediction:
    found = predict([Need(value) for value in values], 0.0001)
    assert found is not None
    return found


def lognormal(rng: random.Random, count: int, deviation: float, median: float = 100.0) -> list[float]:
    return [median * math.exp(rng.gauss(0, deviation)) for _ in range(count)]


@pytest.mark.parametrize("count", [3, 5, 10, 40, 200])
@pytest.mark.parametrize("deviation", [0.03, 0.3, 1.0])
def test_no_more_next_runs_exceed_the_bound_than_were_allowed_to(count: int, deviation: float) -> None:
    rng = random.Random(count)
    exceeded = 0.0
    for _ in range(400):
        bound = history(lognormal(rng, count, deviation)).bound(0.95)
        # The chance of the next run, which is known, instead of one next run.
        exceeded += math.erfc(math.log(bound / 100) / deviation / math.sqrt(2)) / 2
    # Weights for the recent make the deviation a little less sure than the formula knows.
    assert exceeded / 400 <= 0.05 * 1.2


def test_what_is_said_to_exceed_is_what_exceeds() -> None:
    found = history(lognormal(random.Random(1), 300, 0.3))
    assert pytest.approx(0.02) == found.exceeding(found.bound(0.98))
    assert pytest.approx(0.5, abs=0.1) == found.exceeding(100.0)


def test_more_spread_needs_more_buffer() -> None:
    bounds = [history(lognormal(random.Random(7), 30, deviation)).bound(0.99) for deviation in (0.05, 0.2, 0.8)]
    assert sorted(bounds) == bounds
    assert bounds[2] > 2 * bounds[1]


def test_more_runs_need_less_buffer() -> None:
    few, many = (history([100.0, 110.0] * count).bound(0.99) for count in (1, 20))
    assert few > 2 * many


def test_recent_runs_count_more() -> None:
    weights = recency(100)
    assert pytest.approx(0.5) == weights[int(HALF_LIFE)]
    grown = history([200.0] * 40 + [100.0] * 40)
    shrunk = history([100.0] * 40 + [200.0] * 40)
    assert grown.usual > shrunk.usual


def test_runs_that_all_needed_the_same_still_differ_a_little() -> None:
    found = predict([Need(100.0)] * 10, 0.02)
    assert found is not None
    assert 103 < found.bound(0.99) < 110


def test_few_runs_that_are_alike_are_no_reason_for_a_large_buffer() -> None:
    """What they are taken to differ by at least is assumed, not estimated from two."""
    bounds = [history_of(100.0, count).bound(0.99) for count in range(2, 10)]
    assert sorted(bounds, reverse=True) == bounds
    assert bounds[0] < 107


def history_of(value: float, count: int) -> Prediction:
    found = predict([Need(value)] * count, 0.02)
    assert found is not None
    return found


def test_jobs_have_levels_of_their_own_and_share_how_runs_differ() -> None:
    rng = random.Random(2)
    needs = [
        Need(value, name=name)
        for small, large in zip(lognormal(rng, 40, 0.1), lognormal(rng, 40, 0.1, 1000.0))
        for name, value in (("small", small), ("large", large))
    ]
    found = predict(needs, 0.0001)
    assert found is not None
    assert ("large", True) == (found.name, found.freedom > 60)
    assert [pytest.approx(0.1, rel=0.25), pytest.approx(1000, rel=0.1)] == [found.deviation, found.usual]


def test_a_job_that_only_failed_has_no_level() -> None:
    plain = [Need(100.0, name="a"), Need(101.0, name="a")]
    assert predict(plain, 0.02) == predict([*plain, Need(900.0, complete=False, name="b")], 0.02)


def test_one_complete_run_predicts_nothing() -> None:
    assert None is predict([Need(100.0), Need(300.0, complete=False)], 0.02)
    assert None is predict([], 0.02)


def test_a_lower_bound_beyond_the_rest_raises_the_prediction_and_one_far_below_tells_nothing() -> None:
    plain = [Need(value) for value in lognormal(random.Random(3), 30, 0.1)]
    usual, raised, same = (
        predict([*plain, *more], 0.02) for more in ([], [Need(200.0, complete=False)], [Need(5.0, complete=False)])
    )
    assert usual is not None
    assert raised is not None
    assert same is not None
    assert raised.bound(0.99) > 1.1 * usual.bound(0.99)
    assert pytest.approx(usual.bound(0.99), rel=0.01) == same.bound(0.99)


def test_runs_cut_short_do_not_hide_what_is_needed() -> None:
    """Of needs around 100 those above 110 are only known to be above it, as under a limit of 110."""
    rng = random.Random(5)
    needs = lognormal(rng, 400, 0.2)
    cut = predict([Need(min(value, 110.0), value <= 110.0) for value in needs], 0.02)
    naive = predict([Need(value) for value in needs if value <= 110.0], 0.02)
    true = 100 * math.exp(2.3263 * 0.2)
    assert cut is not None
    assert naive is not None
    assert naive.bound(0.99) < 0.85 * true
    assert pytest.approx(true, rel=0.1) == cut.bound(0.99)


def test_of_few_values_the_quantile_is_the_largest() -> None:
    assert 9.0 == weighted_quantile([1.0, 9.0, 2.0], 0.99)


def test_a_value_that_was_rare_and_long_ago_is_beyond_the_quantile() -> None:
    assert 1.0 == weighted_quantile([1.0] * 200 + [9.0] * 5, 0.95)
    assert 9.0 == weighted_quantile([1.0] * 5 + [9.0] * 5 + [1.0] * 190, 0.95)
