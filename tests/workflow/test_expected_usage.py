from __future__ import annotations

from random import Random
from typing import Any

from jobmeter.workflow.expected_usage import Use, expected_usage
from jobmeter.workflow.plan import Retry
from tests.workflow.jobs import a_job, a_sweep


def a_row(name: str, seconds: float, status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "wall_seconds": seconds, **fields}


def test_a_job_is_expected_to_use_what_its_own_runs_used_and_not_those_of_other_parameters() -> None:
    jobs = a_sweep(1, 2, step="s")
    rows = [a_row("s1", 10), a_row("s2", 100), a_row("s1", 12)]
    expected = expected_usage(jobs, {"s": rows}, None)
    assert [10, 12] == [use.seconds for use in expected[1].completed]
    assert [100] == [use.seconds for use in expected[2].completed]


def test_a_job_that_never_ran_takes_what_the_others_of_its_step_did() -> None:
    expected = expected_usage(a_sweep(1, 2, step="s"), {"s": [a_row("s1", 10), a_row("s1", 12)]}, None)
    assert [10, 12] == [use.seconds for use in expected[2].completed]
    assert expected[2].assumption is None


def test_without_history_it_is_the_request_then_the_option_then_the_median_of_the_others() -> None:
    jobs = [a_job(1, runtime_seconds=60), a_job(2)]
    assumed = expected_usage(jobs, {}, 5.0)
    assert (60, "the runtime it requests") == (assumed[1].completed[0].seconds, assumed[1].assumption)
    assert (5, "the runtime of --assume") == (assumed[2].completed[0].seconds, assumed[2].assumption)
    others = expected_usage([*jobs, a_job(3)], {"job3": [a_row("job3", 7)]}, None)
    assert (7, "the median of the other jobs") == (others[2].completed[0].seconds, others[2].assumption)


def test_a_job_of_which_nothing_is_known_is_absent() -> None:
    assert {} == expected_usage([a_job(1)], {}, None)


def test_failures_count_only_if_the_job_is_tried_again_after_them() -> None:
    rows = [a_row("a", 3, "oom"), a_row("a", 4, "failed", exit_code=1), a_row("a", 10)]
    job = a_job(1, name="a")._replace(retry=Retry(times=1))
    assert [Use(3)] == expected_usage([job], {"a": rows}, None)[1].failed
    assert [10] == [use.seconds for use in expected_usage([job], {"a": rows}, None)[1].completed]


def test_as_many_attempts_fail_as_did_before_and_never_more_than_the_retries() -> None:
    job = a_job(1, name="a")._replace(retry=Retry(times=2))
    rows = [a_row("a", 1, "oom"), *(a_row("a", 10) for _ in range(3))]
    expected, chance = expected_usage([job], {"a": rows}, None)[1], Random(2)
    draws = [expected.draw(chance, 2) for _ in range(4000)]
    failed = sum(len(attempts) > 1 for attempts in draws) / len(draws)
    assert 0.22 < failed < 0.28
    assert 3 == max(map(len, draws))
    assert [1] == sorted({use.seconds for attempts in draws for use in attempts[:-1]})


def test_jobs_that_vary_are_expected_to_vary_and_many_runs_speak_for_themselves() -> None:
    few = expected_usage([a_job(1, name="a")], {"a": [a_row("a", 8), a_row("a", 12)]}, None)[1]
    many = expected_usage([a_job(1, name="a")], {"a": [a_row("a", 8), a_row("a", 12)] * 50}, None)[1]
    same = expected_usage([a_job(1, name="a")], {"a": [a_row("a", 10)] * 3}, None)[1]
    assert few.spread > 5 * many.spread > 0
    assert same.spread == 0
