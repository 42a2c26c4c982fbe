from __future__ import annotations

import os

import pytest

from jobmeter.collectors.rate import SHORTEST_SPAN, CpuPercent


def test_a_rate_is_cpu_time_over_elapsed_time_in_percent_of_one_core() -> None:
    rate = CpuPercent(100.0, 5.0)
    looks = [(102.0, 6.0), (103.0, 6.0), (105.0, 7.6)]
    assert [50.0, 0.0, 80.0] == [rate.update(at, used, at) for at, used in looks]


def test_before_the_shortest_span_it_is_too_early_to_tell_and_nothing_is_lost() -> None:
    rate = CpuPercent(0.0)
    early = [
        rate.update(0.1, 0.1, 0.1),
        rate.update(0.2, 0.1, 0.2),
        rate.update(SHORTEST_SPAN - 0.001, 0.2, SHORTEST_SPAN - 0.001),
    ]
    assert ([None] * 3, 40.0) == (early, rate.update(0.5, 0.2, 0.5))


def test_a_job_shorter_than_the_span_gets_its_rate_when_it_ends() -> None:
    rate = CpuPercent(0.0)
    assert [None, 50.0] == [rate.update(0.05, 0.05, 0.05), rate.update(0.1, 0.05, 0.1, last=True)]


def test_the_last_moment_of_a_longer_job_is_too_short_for_a_rate() -> None:
    rate = CpuPercent(0.0)
    rate.update(1.0, 0.5, 1.0)
    assert None is rate.update(1.05, 0.55, 1.05, last=True)


def test_a_look_that_took_long_makes_a_rate_lower_and_never_higher() -> None:
    rate = CpuPercent(0.0)
    # A busy thread: at 1 s the clock was read, and the counter 50 ms later; at 2 s both at once.
    assert [100.0, 95.0] == [rate.update(1.0, 1.05, 1.05), rate.update(2.0, 2.0, 2.0)]


def test_no_time_at_all_has_no_rate() -> None:
    assert None is CpuPercent(7.0).update(7.0, 1.0, 7.0, last=True)


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


def test_a_short_job_with_a_coarse_counter_has_a_rate_when_it_used_four_ticks() -> None:
    ends = [CpuPercent(0.0, tick=1.0).update(2.5, used, 2.5, last=True) for used in (3.0, 4.0)]
    assert [None, 160.0] == ends
