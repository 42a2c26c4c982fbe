from __future__ import annotations

import pytest

from jobmeter.meter.schedule import FIRST, fine_window_end, next_offset, peek_gap, window_end


def offsets(interval: float, count: int, delay: float = 0.0) -> list[float]:
    """The first samples of a job, each taken `delay` seconds late."""
    times, elapsed = [], 0.0
    for _ in range(count):
        times.append(next_offset(elapsed, interval))
        elapsed = times[-1] + delay
    return times


def test_a_job_is_sampled_densely_at_its_start_and_then_at_the_interval() -> None:
    assert [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 2.0, 3.0] == offsets(1.0, 10)


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 2.0, 60.0])
def test_after_the_start_samples_are_at_exact_multiples_of_the_interval(interval: float) -> None:
    regular = [offset for offset in offsets(interval, 30) if offset >= interval]
    assert len(regular) >= 15
    assert [interval * number for number in range(1, len(regular) + 1)] == regular


def test_samples_that_come_late_do_not_drift() -> None:
    assert [float(n) for n in range(1, 8)] == [o for o in offsets(1.0, 14, delay=0.3) if o >= 1.0][:7]


def test_a_sample_that_was_missed_is_not_made_up_for() -> None:
    assert (6.0, 6.0, 7.0) == (next_offset(5.0, 1.0), next_offset(5.999, 1.0), next_offset(6.0, 1.0))


@pytest.mark.parametrize("interval", [0.125, 0.25, 1.0, 7.0])
def test_the_next_sample_lies_always_ahead_and_never_further_than_the_interval(interval: float) -> None:
    for elapsed in (n * interval / 8 for n in range(200)):
        ahead = next_offset(elapsed, interval) - elapsed
        assert 0 < ahead <= interval * (1 + 1e-9)


def test_an_interval_below_the_first_gap_is_kept_to() -> None:
    interval = FIRST / 4
    assert [interval, 2 * interval, 3 * interval] == offsets(interval, 3)


@pytest.mark.parametrize(
    ("elapsed", "ran", "expected"),
    [
        (0.0, True, 0.005),
        (0.1, False, 0.005),
        (2.0, True, 0.04),
        (2.0, False, 0.04),
        (60.0, True, 0.1),
        (60.0, False, 0.4),
    ],
)
def test_peeks_grow_rarer_with_the_age_of_a_job(elapsed: float, ran: bool, expected: float) -> None:
    assert expected == pytest.approx(peek_gap(elapsed, ran=ran))


def windows_until(seconds: float, longest: float = 10.0) -> int:
    """How many windows a job that never rests has after so many seconds, if each ends when it is due."""
    elapsed, count = 0.0, 0
    while elapsed < seconds:
        elapsed = min(fine_window_end(elapsed, longest), window_end(elapsed, longest, fine=True))
        count += 1
    return count


@pytest.mark.parametrize("seconds", [1.0, 3.0, 10.0, 60.0, 600.0, 1200.0])
def test_a_run_of_over_a_second_has_fifty_to_five_hundred_windows(seconds: float) -> None:
    assert 50 <= windows_until(seconds) <= 500


@pytest.mark.parametrize(("days", "most"), [(1, 4_000), (30, 8_000), (365, 11_000)])
def test_windows_of_a_very_long_run_grow_with_the_logarithm_of_its_age(days: int, most: int) -> None:
    assert windows_until(days * 86_400.0) < most


@pytest.mark.parametrize("elapsed", [0.0, 0.3, 5.0, 400.0, 5_000.0])
def test_a_killed_meter_loses_no_more_than_the_longest_window(elapsed: float) -> None:
    assert elapsed < window_end(elapsed, 10.0, fine=True) <= elapsed + 10.0


def test_windows_that_are_requested_are_at_its_multiples() -> None:
    assert [1.0, 2.0, 3.0] == [window_end(elapsed, 1.0, fine=False) for elapsed in (0.0, 1.0, 2.0)]
    assert 20_010.0 == window_end(20_000.0, 10.0, fine=False)
