from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jobmeter.workflow.eta import Pace, remaining_seconds
from jobmeter.workflow.plan import Job
from tests.workflow.jobs import a_job, a_sweep


def paced(**steps: float) -> Pace:
    pace = Pace()
    for step, seconds in steps.items():
        pace.add(step, seconds)
    return pace


def left(
    jobs: Sequence[Job],
    pace: Pace,
    concurrency: float = 1.0,
    settled: Collection[int] = (),
    elapsed: Mapping[int, float] | None = None,
) -> float | None:
    return remaining_seconds(jobs, lambda number: number in settled, elapsed or {}, pace, concurrency)


def test_nothing_is_said_while_nothing_has_ended() -> None:
    assert left([a_job(1)], Pace()) is None


def test_work_is_shared_out_among_those_that_run_at_a_time() -> None:
    assert 50.0 == left(a_sweep(1, 20, step="train"), paced(train=10.0), concurrency=4)


def test_a_step_takes_the_mean_of_its_own() -> None:
    pace = paced(train=10.0, test=2.0)
    pace.add("train", 20.0)
    assert 15.0 == left([a_job(1, name="train")], pace)


def test_a_step_of_which_no_job_has_ended_takes_the_runtime_it_requests() -> None:
    assert 60.0 == left([a_job(1, name="report", runtime_seconds=60.0)], paced(train=10.0, test=2.0))


def test_nothing_is_said_of_a_step_that_does_not_say_and_of_which_none_has_ended() -> None:
    assert left([a_job(1, name="report")], paced(train=10.0, test=2.0)) is None


def test_what_is_done_failed_or_blocked_takes_no_more_time() -> None:
    assert 10.0 == left(a_sweep(1, 3, step="train"), paced(train=10.0), settled=(1, 3))


def test_what_a_running_job_has_behind_it_is_not_before_it() -> None:
    assert 3.0 == left([a_job(1, name="train")], paced(train=10.0), elapsed={1: 7.0})


def test_a_job_that_takes_longer_than_its_like_is_not_about_to_end_for_ever() -> None:
    assert 50.0 == left([a_job(1, name="train")], paced(train=10.0), elapsed={1: 100.0})


def test_many_at_a_time_do_not_shorten_a_chain() -> None:
    chain = [a_job(1, name="a"), a_job(2, 1, name="b"), a_job(3, 2, name="c"), *a_sweep(4, 2, step="c")]
    assert 60.0 == left(chain, paced(a=10.0, b=20.0, c=30.0), concurrency=100)


def test_a_chain_begins_with_what_is_not_done() -> None:
    chain = [a_job(1, name="a"), a_job(2, 1, name="b"), a_job(3, 2, name="c")]
    assert 45.0 == left(chain, paced(a=10.0, b=20.0, c=30.0), concurrency=100, settled=(1,), elapsed={2: 5.0})


def test_nothing_left_takes_no_time() -> None:
    assert 0.0 == left([a_job(1)], paced(job1=3.0), settled=(1,))
