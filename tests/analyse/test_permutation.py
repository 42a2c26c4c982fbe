"""The test of two groups, against values of scipy.stats.permutation_test and ttest_ind."""

from __future__ import annotations

import random

import pytest

from jobmeter.analyse.permutation import evidence

# Lengths of jackals' lower jaws, male and female: Manly, Randomization, Bootstrap and Monte Carlo Methods in Biology.
MALE = [120.0, 107, 110, 116, 114, 111, 113, 117, 114, 112]
FEMALE = [110.0, 111, 107, 108, 110, 105, 107, 106, 111, 111]


def test_all_deals_are_looked_at_where_they_are_few() -> None:
    # scipy.stats.permutation_test, all 252 and all 462 deals
    result = evidence([10.1, 9.9, 10.4, 10.0, 10.3], [12.9, 13.2, 13.1, 12.7, 13.6])
    assert result is not None
    assert pytest.approx(0.007936507936507936) == result.p
    result = evidence([2, 4, 4, 7, 9, 12], [3, 5, 8, 11, 13])
    assert result is not None
    assert pytest.approx(0.5324675324675324) == result.p


def test_the_jackals_of_the_textbook() -> None:
    # All 184,756 deals give 0.00333; ours are a sample of them.
    result = evidence(MALE, FEMALE)
    assert result is not None
    assert pytest.approx(0.00333, abs=0.0015) == result.p
    assert result.interval is not None
    low, high = result.interval
    assert low < 108.6 / 113.4 < high < 1


def test_the_same_question_has_the_same_answer() -> None:
    assert evidence(MALE, FEMALE) == evidence(MALE, FEMALE)


def test_turned_round_the_ratios_are_the_inverse() -> None:
    a, b = [10.1, 9.9, 10.4, 10.0, 10.3], [12.9, 13.2, 13.1, 12.7]
    there, back = evidence(a, b), evidence(b, a)
    assert there is not None
    assert there.interval is not None
    assert back is not None
    assert back.interval is not None
    assert there.p == back.p
    assert pytest.approx(there.interval) == (1 / back.interval[1], 1 / back.interval[0])


def test_many_values_are_compared_by_their_means() -> None:
    # scipy.stats.ttest_ind(equal_var=False): t = -2.02486, p = 0.0450 with 125 degrees of freedom
    a, b = [(i * 37 % 101) + 50.0 for i in range(60)], [(i * 53 % 101) + 62.0 for i in range(70)]
    result = evidence(a, b)
    assert result is not None
    assert pytest.approx(0.0450, abs=0.003) == result.p


@pytest.mark.parametrize(("left", "right"), [(1, 1), (1, 100), (3, 3), (2, 5)])
def test_with_too_few_values_nothing_is_claimed(left: int, right: int) -> None:
    assert evidence([1.0] * left, [9.0] * right) is None


def test_four_and_four_are_enough() -> None:
    result = evidence([1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3])
    assert result is not None
    assert pytest.approx(2 / 70) == result.p


def test_equal_values_do_not_differ() -> None:
    result = evidence([5.0] * 6, [5.0] * 6)
    assert result is not None
    assert (1.0, (1.0, 1.0)) == (result.p, result.interval)


def test_nothing_against_nothing_does_not_differ_and_has_no_ratio() -> None:
    assert (1.0, None) == evidence([0.0] * 5, [0.0] * 5)
    assert (1.0, None) == evidence([0.0] * 60, [0.0] * 60)


def test_the_interval_holds_the_truth_as_often_as_it_says_and_agrees_with_the_test() -> None:
    chance, held = random.Random(7), 0
    for _ in range(300):
        a = [chance.lognormvariate(0, 0.3) for _ in range(5)]
        b = [1.3 * chance.lognormvariate(0, 0.3) for _ in range(6)]
        result = evidence(a, b)
        assert result is not None
        assert result.interval is not None
        low, high = result.interval
        held += low <= 1.3 <= high
        assert (result.p <= 0.05) == (not low <= 1 <= high)
    assert 0.91 <= held / 300 <= 0.99
