"""What a job without a past requests, by what other jobs needed of their requests."""

from __future__ import annotations

from jobmeter.analyse.size.need import Need
from jobmeter.analyse.size.pool import Pool, Terms
from jobmeter.analyse.size.shares import ROOM, Share, choose_share
from jobmeter.analyse.size.sizer import Sizer


def test_without_other_jobs_it_is_all_of_the_request() -> None:
    assert 1.0 == choose_share([], 0.0)


def test_where_others_needed_little_it_is_little_with_room() -> None:
    assert ROOM * 0.2 == choose_share([Share(0.2, 1.0)] * 100, 1.0)


def test_one_job_that_needed_little_says_less_than_many() -> None:
    shares = [choose_share([Share(0.1, 1.0)] * count, 1.0) for count in (1, 10, 100)]
    assert sorted(shares, reverse=True) == shares
    assert shares[0] > 2 * shares[2]


def test_an_expensive_failure_leads_to_a_larger_request() -> None:
    jobs = [Share(0.1, 1.0)] * 20 + [Share(0.5, 1.0)]
    assert choose_share(jobs, 0.0) < ROOM * 0.5 <= choose_share(jobs, 20.0)


def test_after_a_share_that_was_not_enough_comes_one_that_others_needed() -> None:
    jobs = [Share(0.1, 1.0)] * 100 + [Share(0.4, 1.0)] * 50
    assert ROOM * 0.4 == choose_share(jobs, 0.0, above=0.2)
    assert 1.0 == choose_share(jobs, 0.0, above=0.96)


def test_each_job_counts_once_however_often_it_ran() -> None:
    pool = Pool()
    for runs, share in ((300, 0.05), *((1, 0.5),) * 10):
        Sizer(pool).learn([Need(share * 100, {}, 1.0, 100.0)] * runs)
    assert pool.unknown(1000.0, Terms()) >= 500


def test_more_than_the_present_request_is_advised_only_after_it_was_not_enough() -> None:
    pool = Pool()
    Sizer(pool).learn([Need(10.0, {}, 1.0, 100.0)] * 9)
    assert pool.unknown(1000.0, Terms(), 999.0) == 1000
    assert pool.unknown(1000.0, Terms(), 1000.0) == 2000
