from __future__ import annotations

from jobmeter.workflow.attempt_numbers import AttemptNumbers


def test_numbers_go_on_where_those_of_earlier_runners_ended_and_own_ones_are_counted_anew() -> None:
    numbers = AttemptNumbers([(1, 2), (1, 1), (2, 1)])
    assert [3, 4, 2, 1] == [numbers.begin(job) for job in (1, 1, 2, 3)]
    assert [1, 2, 1, 1] == [numbers.own(job, attempt) for job, attempt in ((1, 3), (1, 4), (2, 2), (3, 1))]


def test_an_attempt_that_is_adopted_is_the_first_of_this_runner() -> None:
    numbers = AttemptNumbers([(1, 3)])
    numbers.adopt(1, 3)
    assert (1, 4, 2) == (numbers.own(1, 3), numbers.begin(1), numbers.own(1, 4))
