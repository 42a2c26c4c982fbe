from __future__ import annotations

from jobmeter.collectors.allowance import Allowance


def spend(allowance: Allowance) -> None:
    with allowance:
        pass


def test_an_expense_too_short_for_the_clock_does_not_lift_the_limit() -> None:
    times = iter((5.0, 5.0, 5.0, 6.0))
    allowance = Allowance(share=0.0, at_first=0.01, cpu_clock=lambda: next(times))
    spend(allowance)
    assert allowance.covers(0.01)
    spend(allowance)
    assert not allowance.covers()


def test_one_expense_counts_at_most_four_times_the_one_before() -> None:
    times = iter((5.0, 5.25, 5.25, 1000.0))
    allowance = Allowance(share=0.0, at_first=1.5, cpu_clock=lambda: next(times))
    spend(allowance)
    spend(allowance)
    assert allowance.covers(0.25)
    assert not allowance.covers(0.5)
