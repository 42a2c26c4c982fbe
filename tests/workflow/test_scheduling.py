from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest

from jobmeter.engines.contract import Capacity
from jobmeter.model import Requirement
from jobmeter.workflow.plan import Job
from jobmeter.workflow.reservation import Amounts, Occupied, reserve
from jobmeter.workflow.scheduling import Blocked, Scheduler
from tests.workflow.jobs import a_job

GIB = 2**30


def started(scheduler: Scheduler, now: float = 0.0) -> list[int]:
    return [job.number for job in scheduler.startable(now)]


def a_scheduler(jobs: Iterable[Job], cpus: float = 2, memory: int | None = None, gpus: int = 0) -> Scheduler:
    return Scheduler(list(jobs), Capacity(cpus, memory, gpus))


def test_jobs_start_in_their_order_while_they_fit_and_the_next_when_one_ends() -> None:
    scheduler = a_scheduler([a_job(number) for number in (1, 2, 3, 4)])
    assert [1, 2] == started(scheduler)
    assert (2, 2) == (scheduler.running, scheduler.waiting)
    scheduler.completed(2)
    assert [3] == started(scheduler)
    assert (2, 1) == (scheduler.running, scheduler.waiting)


def test_a_job_that_requests_no_cpus_is_assumed_to_need_one() -> None:
    assert [1] == started(a_scheduler([a_job(1), a_job(2)], cpus=1.5))


def test_memory_counts_as_cpus_do_where_it_is_known() -> None:
    jobs = [a_job(number, cpus=0.1, memory_bytes=3 * GIB) for number in (1, 2, 3)]
    assert [1, 2] == started(a_scheduler(jobs, memory=8 * GIB))
    assert [1, 2, 3] == started(a_scheduler(jobs, memory=None))


def test_the_one_that_matters_most_of_those_that_fit_is_first() -> None:
    jobs = [a_job(1), a_job(2)._replace(priority=5), a_job(3, cpus=2)._replace(priority=9), a_job(4)]
    scheduler = a_scheduler(jobs)
    assert [3] == started(scheduler)
    scheduler.completed(3)
    assert [2, 1] == started(scheduler)


def test_smaller_jobs_do_not_starve_a_large_one_that_is_first_in_line() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2, cpus=2)._replace(priority=9), a_job(3)._replace(priority=10)])
    assert [3] == started(scheduler)
    scheduler.completed(3)
    assert [2] == started(scheduler)
    scheduler.completed(2)
    assert [1] == started(scheduler)


def test_a_job_overtakes_if_it_ends_before_there_is_room_for_the_first_in_line() -> None:
    jobs = [
        a_job(1, cpus=2, runtime_seconds=100.0),
        a_job(2, cpus=4, runtime_seconds=50.0),
        a_job(3),  # requests no runtime: it could run for ever
        a_job(4, runtime_seconds=101.0),
        a_job(5, runtime_seconds=100.0),
        a_job(6, runtime_seconds=60.0),
        a_job(7, runtime_seconds=59.0),
    ]
    scheduler = a_scheduler(jobs, cpus=4)
    assert [1, 5, 6] == started(scheduler, 0.0)
    scheduler.completed(6)
    assert [] == started(scheduler, 42.0)  # 7 would end at 101
    scheduler.completed(5)
    assert [7] == started(scheduler, 41.0)
    scheduler.completed(7)
    scheduler.completed(1)
    assert [2] == started(scheduler, 100.0)
    scheduler.completed(2)
    assert [3, 4] == started(scheduler, 150.0)


def test_a_job_overtakes_if_the_first_in_line_leaves_room_for_it() -> None:
    jobs = [a_job(1, cpus=3, runtime_seconds=10.0), a_job(2, cpus=3), a_job(3, cpus=1), a_job(4, cpus=1)]
    scheduler = a_scheduler(jobs, cpus=4)
    assert [1, 3] == started(scheduler)
    scheduler.completed(1)
    assert [2] == started(scheduler)
    scheduler.completed(3)
    assert [4] == started(scheduler)


def test_one_that_lacks_memory_alone_holds_back_no_cpus_that_it_does_not_need() -> None:
    jobs = [a_job(1, memory_bytes=6 * GIB), a_job(2, memory_bytes=4 * GIB), a_job(3), a_job(4, memory_bytes=GIB)]
    scheduler = a_scheduler(jobs, cpus=3, memory=8 * GIB)
    assert [1, 3] == started(scheduler)  # a CPU is left for 2, and what 4 requests may be what 2 lacks
    scheduler.completed(1)
    assert [2, 4] == started(scheduler)


def test_a_job_that_runs_longer_than_it_requests_lets_nobody_overtake() -> None:
    jobs = [a_job(1, runtime_seconds=10.0), a_job(2, cpus=2), a_job(3, runtime_seconds=1.0)]
    scheduler = a_scheduler(jobs)
    assert [1, 3] == started(scheduler, 0.0)
    scheduler.retry(3, jobs[2].requirement)
    assert [] == started(scheduler, 11.0)
    scheduler.completed(1)
    assert [2] == started(scheduler, 12.0)


def test_one_that_is_more_urgent_and_comes_later_takes_the_place_of_the_first_in_line() -> None:
    jobs = [a_job(1), a_job(2), a_job(3, cpus=2), a_job(4, 1, cpus=2)._replace(priority=1)]
    scheduler = a_scheduler(jobs)
    assert [1, 2] == started(scheduler)
    scheduler.completed(1)
    assert [] == started(scheduler)
    scheduler.completed(2)
    assert [4] == started(scheduler)


def test_a_dependant_starts_when_the_last_it_needs_is_done() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2), a_job(3, 1, 2)])
    assert [1, 2] == started(scheduler)
    scheduler.completed(1)
    assert [] == started(scheduler)
    scheduler.completed(2)
    assert [3] == started(scheduler)


def test_what_was_done_before_is_not_run_and_keeps_nobody_waiting() -> None:
    scheduler = Scheduler([a_job(1), a_job(2, 1), a_job(3, 2)], Capacity(2, None), done={1, 2})
    assert scheduler.waiting == 1
    assert [3] == started(scheduler)


def test_ten_jobs_of_a_tenth_fit_one_cpu_and_an_eleventh_does_not() -> None:
    jobs = [a_job(number, cpus=0.1) for number in range(1, 12)]
    assert list(range(1, 11)) == started(a_scheduler(jobs, cpus=1))


def test_the_whole_machine_is_free_again_after_many_fractions_of_it() -> None:
    fractions = [a_job(number, cpus=(0.1, 0.2, 0.7, 1 / 3)[number % 4]) for number in range(1, 5001)]
    scheduler = a_scheduler([*fractions, a_job(5001, *range(1, 5001), cpus=4)], cpus=4)
    begun = started(scheduler)
    while len(begun) < 5000:
        for number in started_now(begun, scheduler):
            scheduler.completed(number)
        begun += started(scheduler)
    for number in started_now(begun, scheduler):
        scheduler.completed(number)
    assert [5001] == started(scheduler)


def started_now(begun: list[int], scheduler: Scheduler) -> list[int]:
    return [number for number in begun[-scheduler.running :] if not scheduler.is_settled(number)]


def test_no_more_gpus_are_given_out_than_there_are() -> None:
    jobs = [a_job(1, cpus=0.1, gpus=2), a_job(2, cpus=0.1, gpus=1), a_job(3, cpus=0.1, gpus=1), a_job(4, cpus=0.1)]
    scheduler = a_scheduler(jobs, gpus=3)
    assert [1, 2, 4] == started(scheduler)
    scheduler.completed(2)
    assert [3] == started(scheduler)


def test_on_an_engine_with_a_queue_everything_that_is_unblocked_starts() -> None:
    jobs = [a_job(number, cpus=64, memory_bytes=2**50, gpus=8) for number in range(1, 100)]
    assert 99 == len(started(Scheduler([*jobs, a_job(100, 1)], Capacity())))


def test_slots_bound_how_many_run_at_one_time_whatever_they_request() -> None:
    scheduler = Scheduler([a_job(number, cpus=0.01) for number in (1, 2, 3)], Capacity(slots=2))
    assert [1, 2] == started(scheduler)
    scheduler.completed(1)
    assert [3] == started(scheduler)


def test_a_job_that_requests_nothing_starts_also_where_less_than_one_cpu_may_be_given_out() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2)], cpus=0.5)
    assert [1] == started(scheduler)
    scheduler.completed(1)
    assert [2] == started(scheduler)


def test_a_job_that_is_adopted_runs_already_and_others_wait_until_there_is_room() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2), a_job(3, 2)])
    scheduler.adopt(2, Requirement(cpus=2), 0.0)
    assert ([], 1, Requirement(cpus=2)) == (started(scheduler), scheduler.running, scheduler.requirement(2))
    scheduler.completed(2)
    assert [1, 3] == started(scheduler)


def test_what_needs_a_failed_job_is_given_up_near_and_far_and_the_rest_goes_on() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2, 1), a_job(3, 2), a_job(4, 3, 5), a_job(5), a_job(6, 5)])
    assert [1, 5] == started(scheduler)
    assert {Blocked(2, 1), Blocked(3, 1), Blocked(4, 1)} == set(scheduler.failed(1))
    assert 1 == scheduler.waiting
    scheduler.completed(5)
    assert [6] == started(scheduler)


def test_a_job_blocked_by_two_failures_is_reported_once() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2), a_job(3, 1, 2)])
    started(scheduler)
    assert [Blocked(3, 1)] == scheduler.failed(1)
    assert [] == scheduler.failed(2)


def test_another_attempt_waits_for_the_room_it_requests() -> None:
    jobs = [a_job(1, cpus=0.1, memory_bytes=GIB), a_job(2, cpus=0.1, memory_bytes=3 * GIB)]
    scheduler = a_scheduler(jobs, memory=4 * GIB)
    assert [1, 2] == started(scheduler)
    grown = jobs[0].requirement._replace(memory_bytes=2 * GIB)
    scheduler.retry(1, grown)
    assert [] == started(scheduler)
    scheduler.completed(2)
    assert [1] == started(scheduler)
    assert grown == scheduler.requirement(1)


def test_after_stop_nothing_starts_not_even_what_becomes_ready_then() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2), a_job(3), a_job(4, 1)])
    started(scheduler)
    scheduler.stop()
    scheduler.completed(1)
    assert [] == started(scheduler)
    assert 2 == scheduler.waiting


def test_what_needs_a_cancelled_job_only_waits() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2, 1), a_job(3, 2)])
    started(scheduler)
    scheduler.stop()
    scheduler.cancelled(1)
    assert (0, 2) == (scheduler.running, scheduler.waiting)
    assert not scheduler.is_settled(2)


def test_a_job_is_given_up_wherever_it_is_on_its_way() -> None:
    scheduler = a_scheduler([a_job(1), a_job(2), a_job(3), a_job(4, 1), a_job(5, 4)])
    assert [1, 2] == started(scheduler)
    assert [] == scheduler.failed(3)  # ready, and there was no room
    assert [Blocked(5, 4)] == scheduler.failed(4)  # waited for another
    scheduler.completed(1)
    assert [] == started(scheduler)
    assert (1, 0) == (scheduler.running, scheduler.waiting)


@pytest.mark.parametrize("seed", range(20))
def test_any_workflow_runs_to_its_end_within_the_machine_and_nobody_delays_the_first_in_line(seed: int) -> None:
    """On a clock of its own, every job takes the runtime that it requests; some request none."""
    chance = random.Random(seed)
    jobs = {
        number: a_job(
            number,
            *chance.sample(range(1, number), min(chance.randrange(3), number - 1)),
            cpus=chance.choice((0.3, 1, 2.5, 4)),
            memory_bytes=chance.choice((None, GIB, 5 * GIB)),
            gpus=chance.choice((0, 0, 1, 2)),
            runtime_seconds=chance.choice((None, 1.0, 5.0, 20.0)),
        )._replace(priority=chance.randrange(3))
        for number in range(1, 151)
    }
    scheduler = a_scheduler(jobs.values(), cpus=4, memory=8 * GIB, gpus=2)
    ends: dict[int, float] = {}  # of running jobs
    done: set[int] = set()
    promise: tuple[int, float] | None = None  # the first in line, and when it begins at the latest
    now = 0.0
    while len(done) < len(jobs):
        for job in scheduler.startable(now):
            assert job.number not in ends
            assert job.number not in done
            assert set(job.blocked_by) <= done
            ends[job.number] = now + (job.requirement.runtime_seconds or chance.uniform(0.5, 30.0))
            if promise is not None and promise[0] == job.number:
                assert now <= promise[1]
            elif promise is not None and in_line(job) < in_line(jobs[promise[0]]):
                promise = None  # one that is more urgent became ready
        free = Amounts(4, 8 * GIB, 2, math.inf)
        for number in ends:
            free = free.minus(amounts_of(jobs[number]))
        assert free.cover(Amounts(0, 0, 0, 0))
        ready = [job for job in jobs.values() if job.number not in done | set(ends) and set(job.blocked_by) <= done]
        if ready:
            first = min(ready, key=in_line)
            assert not free.cover(amounts_of(first)), f"{first.name} is first in line, fits and waits"
            if promise is not None and promise[0] != first.number:
                promise = None
            running = [
                Occupied(amounts_of(jobs[number]), end if jobs[number].requirement.runtime_seconds else None)
                for number, end in ends.items()
            ]
            begins = reserve(amounts_of(first), free, running, now).begins
            if begins is not None and promise is None:
                promise = first.number, begins
        number = min(ends, key=ends.__getitem__)
        now = ends.pop(number)
        done.add(number)
        scheduler.completed(number)
    assert [] == started(scheduler, now)


def in_line(job: Job) -> tuple[int, int]:
    return -job.priority, job.number


def amounts_of(job: Job) -> Amounts:
    return Amounts(job.requirement.cpus or 1, job.requirement.memory_bytes or 0, job.gpus)
