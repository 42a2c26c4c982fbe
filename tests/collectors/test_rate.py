from __future__ import annotations

import os

import pytest

from jobmeter.collectors.rate import SHORTEST_SPAN, CpuPercent


def test_a_rate_is_cpu_time_over_elapsed_time_in_percent_of_one_core() -> None:
    rate = CpuPercent(100.0, 5.0)
    looks = [(102.0, 6.0), (103.0, 6.0), (105.0, 7.6)]
    assert [50.0, 0.0, 80.0] == [rate.update(at, used, at) for at, used in looks]


def test_before_the_shortest_span_there_is_no_rate_and_nothing_is_lost() -> None:
    rate = CpuPercent(0.0)
    early = [
        rate.update(0.1, 0.1, 0.1),
        rate.update(0.2, 0.1, 0.2),
        rate.update(0.9 * SHORTEST_SPAN, 0.2, 0.9 * SHORTEST_SPAN),
    ]
    assert ([None] * 3, 40.0) == (early, rate.update(2.0, 0.8, 2.0))


def test_a_sample_that_comes_a_little_early_has_its_rate() -> None:
    rate = CpuPercent(0.0)
    looks = [(1.003, 0.5), (2.0, 1.0), (2.999, 1.5)]
    assert [49.85, 50.15, 50.05] == [rate.update(at, used, at) for at, used in looks]


def test_half_a_cpu_that_a_limit_gives_in_shares_reads_as_half_a_cpu() -> None:
    """A limit of 0.5 CPUs gives 50 ms at the start of every 100: of all looks a second apart none sees 10 % more."""
    used = [50.0 * (at // 100) + min(at % 100, 50) for at in range(5000)]  # ms, at each ms
    rates = []
    for first in range(100):
        rate = CpuPercent(first / 1000, used[first] / 1000)
        looks = [(at / 1000, used[at] / 1000) for at in range(first + 33, 5000, 33)]
        rates += [percent for at, seconds in looks if (percent := rate.update(at, seconds, at)) is not None]
    assert 45 <= min(rates) <= max(rates) <= 55


def test_a_look_that_took_long_makes_a_rate_lower_and_never_higher() -> None:
    rate = CpuPercent(0.0)
    # A busy thread: at 1 s the clock was read, and the counter 50 ms later; at 2 s both at once.
    assert [100.0, 95.0] == [rate.update(1.0, 1.05, 1.05), rate.update(2.0, 2.0, 2.0)]


def test_no_time_at_all_has_no_rate() -> None:
    assert None is CpuPercent(7.0).update(7.0, 1.0, 7.0)


def test_a_rate_is_never_above_all_cpus_nor_below_zero() -> None:
    cpus = os.cpu_count() or 1
    above, below = CpuPercent(0.0), CpuPercent(0.0, 9.0)
    assert (100.0 * cpus, 0.0) == (above.update(1.0, cpus + 0.5, 1.0), below.update(1.0, 8.0, 1.0))


@pytest.mark.parametrize("seconds", [1 / 3, 2 / 3])
def test_a_rate_has_two_digits_after_the_point(seconds: float) -> None:
    assert round(100 * seconds, 2) == CpuPercent(0.0).update(1.0, seconds, 1.0)


def test_a_coarse_counter_needs_four_ticks_of_time() -> None:
    rate = CpuPercent(0.0, tick=1.0)
    assert [None, 75.0] == [rate.update(3.9, 3.0, 3.9), rate.update(4.0, 3.0, 4.0)]
