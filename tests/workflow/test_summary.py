from __future__ import annotations

import pytest

from jobmeter.workflow.summary import cost, summarise, totals
from tests.workflow.attempted import an_attempt
from tests.workflow.jobs import a_job

GIB = 2**30
HOUR = 3600.0


def test_totals_are_sums_over_every_attempt_failed_ones_too() -> None:
    first = an_attempt(1, "oom", wall_seconds=HOUR, cpu_seconds=HOUR / 2, cpus=2.0, memory_mean_bytes=GIB)
    second = an_attempt(1, attempt=2, wall_seconds=HOUR, cpu_seconds=HOUR, cpus=2.0, memory_mean_bytes=3 * GIB)
    total = totals([first, second])
    assert (1.5, 4.0, 4.0) == pytest.approx((total.core_hours, total.core_hours_requested, total.gb_hours))
    assert total.cpu_efficiency == pytest.approx(1.5 / 4)


def test_what_was_not_measured_or_not_requested_is_not_compared() -> None:
    requested_only = an_attempt(1, wall_seconds=HOUR, cpus=4.0, memory_bytes=4 * GIB)
    used_only = an_attempt(2, wall_seconds=HOUR, cpu_seconds=HOUR, memory_peak_bytes=GIB)
    both = an_attempt(3, wall_seconds=HOUR, cpu_seconds=HOUR, cpus=2.0, memory_bytes=2 * GIB, memory_peak_bytes=GIB)
    total = totals([requested_only, used_only, both])
    assert (0.5, 0.5) == pytest.approx((total.cpu_efficiency, total.memory_efficiency))


def test_of_nothing_measured_nothing_is_said() -> None:
    assert set(totals([an_attempt(1, wall_seconds=1.0)])) == {None}
    assert set(totals([])) == {None}


def test_the_longest_chain_counts_all_attempts_of_its_jobs() -> None:
    jobs = [a_job(1), a_job(2, 1), a_job(3, 1), a_job(4, 2, 3)]
    attempts = [
        an_attempt(1, wall_seconds=1.0),
        an_attempt(2, wall_seconds=5.0),
        an_attempt(3, "oom", wall_seconds=4.0),
        an_attempt(3, attempt=2, wall_seconds=4.0),
        an_attempt(4, wall_seconds=1.0),
    ]
    summary = summarise(jobs, attempts)
    assert (["job1", "job3", "job4"], 10.0) == (summary.critical_path, summary.critical_seconds)


def test_the_costliest_kept_most_from_others() -> None:
    idle = an_attempt(1, wall_seconds=10.0, cpus=8.0, cpu_seconds=1.0)
    busy = an_attempt(2, wall_seconds=10.0, cpus=1.0, cpu_seconds=40.0)
    modest = an_attempt(3, wall_seconds=10.0, cpu_seconds=5.0)
    nothing = an_attempt(4)
    jobs = [a_job(number) for number in (1, 2, 3, 4)]
    assert [idle, busy, modest] == summarise(jobs, [nothing, modest, busy, idle]).costliest
    assert [idle] == summarise(jobs, [modest, busy, idle], most=1).costliest
    assert (80.0, 40.0) == (cost(idle), cost(busy))
