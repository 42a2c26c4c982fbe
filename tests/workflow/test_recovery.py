from __future__ import annotations

import pytest

from jobmeter.engines.contract import Capacity
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.workflow.plan import Retry
from jobmeter.workflow.recovery import next_attempt
from tests.workflow.jobs import a_job

MIB = 2**20
PLENTY = Capacity(8, 64 * 1024 * MIB)
OOM = Outcome(Status.OOM, None, 9)
TIMEOUT = Outcome(Status.TIMEOUT, None, 15)
REQUESTED = Requirement(cpus=1, memory_bytes=100 * MIB, runtime_seconds=60)


def after(
    ended: Outcome,
    requested: Requirement = REQUESTED,
    *,
    attempt: int = 1,
    capacity: Capacity = PLENTY,
    peak: float | None = None,
    **retry: object,
) -> Requirement | None:
    job = a_job(1)._replace(retry=Retry(**{"times": 2, **retry}))  # type: ignore[arg-type]
    return next_attempt(job, requested, ended, attempt, capacity, peak)


def test_who_lacked_memory_gets_more_of_it_and_of_nothing_else() -> None:
    assert after(OOM) == REQUESTED._replace(memory_bytes=150 * MIB)
    assert after(OOM, memory_factor=3.0) == REQUESTED._replace(memory_bytes=300 * MIB)


def test_who_lacked_time_gets_more_of_it_and_of_nothing_else() -> None:
    assert after(TIMEOUT) == REQUESTED._replace(runtime_seconds=90)


def test_usage_above_the_request_is_what_grows() -> None:
    assert after(OOM, peak=200 * MIB) == REQUESTED._replace(memory_bytes=300 * MIB)


def test_a_peak_at_the_limit_is_the_limit() -> None:
    assert after(OOM, peak=100.4 * MIB) == REQUESTED._replace(memory_bytes=150 * MIB)


def test_a_job_without_a_request_that_ran_out_of_memory_gets_one() -> None:
    assert after(OOM, Requirement(), peak=200 * MIB) == Requirement(memory_bytes=300 * MIB)


@pytest.mark.parametrize(("times", "attempt", "again"), [(0, 1, False), (1, 1, True), (1, 2, False), (3, 3, True)])
def test_there_are_as_many_more_attempts_as_the_spec_says(times: int, attempt: int, again: bool) -> None:
    assert again == (after(OOM, times=times, attempt=attempt) is not None)


def test_no_more_is_requested_than_there_is_and_a_job_that_had_it_all_is_given_up() -> None:
    small = Capacity(8, 120 * MIB)
    all_there_is = REQUESTED._replace(memory_bytes=120 * MIB)
    assert after(OOM, capacity=small) == all_there_is
    assert after(OOM, all_there_is, capacity=small, attempt=2) is None


def test_an_unknown_memory_of_the_machine_is_no_limit() -> None:
    assert after(OOM, capacity=Capacity(8, None)) == REQUESTED._replace(memory_bytes=150 * MIB)


def test_exit_codes_that_are_named_are_tried_again_as_they_were() -> None:
    codes = frozenset((75, 143))
    assert after(Outcome(Status.FAILED, 75), exit_codes=codes) == REQUESTED
    assert after(Outcome(Status.KILLED, None, 15), exit_codes=codes) == REQUESTED
    assert after(Outcome(Status.FAILED, 1), exit_codes=codes) is None


@pytest.mark.parametrize("ended", [OOM, TIMEOUT])
def test_a_cause_that_is_not_named_is_not_tried_again(ended: Outcome) -> None:
    assert after(ended, on=frozenset()) is None


def test_out_of_memory_under_another_limit_is_tried_again_with_the_same_request() -> None:
    job = a_job(1)._replace(retry=Retry(times=1))
    assert REQUESTED == next_attempt(job, REQUESTED, OOM, 1, PLENTY, 10 * MIB, met_own_limit=False)
