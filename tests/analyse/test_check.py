"""What counts as more than was requested."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.check import Checked, Key, Tally, check
from jobmeter.analyse.overuse import uses_more_cpus
from jobmeter.model import Requirement

GIB = 2**30


def row(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"id": "run1", "name": "train", "status": status, **fields}


def one(status: str = "completed", min_over: float = 1.0, **fields: Any) -> Checked:
    return check([row(status, **fields)], min_over)


def verdicts_of(checked: Checked) -> list[tuple[str, bool]]:
    return [(line.verdict.resource.name, line.verdict.is_over) for line in checked.verdicts]


def test_peak_memory_wall_time_and_cpu_are_compared_with_the_request() -> None:
    checked = one(
        requirement_memory_bytes=8 * GIB, memory_peak_bytes=10.5 * GIB,
        requirement_cpus=8, cpu_peak_percent=950.5,
        requirement_runtime_seconds=7200, wall_seconds=9900.0,
    )  # fmt: skip
    assert [31.25, pytest.approx(18.8125), 37.5] == [line.verdict.percent for line in checked.violations]


def test_nothing_is_reported_for_what_was_not_requested_or_not_measured() -> None:
    assert [] == one(memory_peak_bytes=GIB, wall_seconds=5.0).verdicts
    assert [] == one(requirement_memory_bytes=GIB, requirement_cpus=2).verdicts


def test_who_stays_within_is_listed_and_no_violation() -> None:
    checked = one(requirement_memory_bytes=8 * GIB, memory_peak_bytes=GIB)
    assert ([("Memory", False)], -87.5) == (verdicts_of(checked), checked.verdicts[0].verdict.percent)
    assert [] == check([row(requirement_memory_bytes=8 * GIB, memory_peak_bytes=GIB)], everything=False).verdicts


@pytest.mark.parametrize(("min_over", "expected"), [(0.0, True), (1.0, False), (0.5, True)])
def test_the_smallest_excess_that_is_reported_can_be_chosen(min_over: float, expected: bool) -> None:
    checked = one(min_over=min_over, requirement_runtime_seconds=1000, wall_seconds=1005.0)
    assert [("Runtime", expected)] == verdicts_of(checked)


def test_exactly_what_was_requested_is_never_too_much() -> None:
    assert [("Memory", False)] == verdicts_of(one(min_over=0.0, requirement_memory_bytes=GIB, memory_peak_bytes=GIB))


def test_out_of_memory_is_a_violation_though_the_peak_is_the_limit() -> None:
    (line,) = one("oom", requirement_memory_bytes=8 * GIB, memory_peak_bytes=8 * GIB - 4096).verdicts
    verdict = line.verdict
    assert (True, True, "out of memory", 8 * GIB) == (verdict.is_over, verdict.at_least, verdict.cause, verdict.used)


def test_out_of_memory_far_below_the_request_is_due_to_another_limit() -> None:
    """That of a container around it, or the machine's; but a sample may have missed what it met."""
    figures = {"requirement_memory_bytes": 4 * GIB, "memory_peak_bytes": GIB // 5, "signal": 9}
    checked = one("oom", memory_quality="exact", **figures)
    assert ([("Memory", False)], ["out of memory (SIGKILL)"]) == (
        verdicts_of(checked),
        [each.cause for each in checked.failures],
    )
    assert [("Memory", True)] == verdicts_of(one("oom", memory_quality="sampled", **figures))


def test_a_timeout_is_a_violation_of_the_runtime() -> None:
    (line,) = one("timeout", requirement_runtime_seconds=60, wall_seconds=60.4).verdicts
    verdict = line.verdict
    assert (True, True, "timeout", 60.4) == (verdict.is_over, verdict.at_least, verdict.cause, verdict.used)


def test_a_job_that_ran_out_of_memory_without_requesting_any_is_a_failure() -> None:
    checked = one("oom", memory_peak_bytes=GIB, signal=9)
    assert ([], ["out of memory (SIGKILL)"]) == (checked.verdicts, [failure.cause for failure in checked.failures])


@pytest.mark.parametrize(
    ("status", "more", "cause"),
    [("failed", {"exit_code": 3}, "failed with exit code 3"), ("killed", {"signal": 11}, "killed by SIGSEGV")],
)
def test_other_failures_are_reported_with_their_cause_and_are_no_violation(
    status: str, more: dict[str, int], cause: str
) -> None:
    checked = one(status, requirement_memory_bytes=GIB, memory_peak_bytes=5, **more)
    assert ([("Memory", False)], [cause]) == (verdicts_of(checked), [failure.cause for failure in checked.failures])


def test_a_failed_job_can_have_used_too_much_besides() -> None:
    checked = one("failed", exit_code=1, requirement_memory_bytes=GIB, memory_peak_bytes=2 * GIB)
    assert ([("Memory", True)], 1) == (verdicts_of(checked), len(checked.failures))


def test_a_figure_that_is_incomplete_is_at_least_that() -> None:
    (line,) = one(requirement_memory_bytes=GIB, memory_peak_bytes=2 * GIB, memory_quality="at least").verdicts
    assert (True, True) == (line.verdict.at_least, line.verdict.is_over)


def test_each_attempt_is_judged_by_what_the_job_requests_and_not_by_what_a_retry_gave_it() -> None:
    attempts = [
        row(status, id=f"run{number}", requirement_memory_bytes=requested * GIB, memory_peak_bytes=peak,
            workflow_job={"job_id": 15, "step": "train", "attempt": number})
        for number, status, requested, peak in ((2, "completed", 12, 10 * GIB), (1, "oom", 8, 8 * GIB))
    ]  # fmt: skip
    first, second = check(attempts).verdicts
    assert (1, 8 * GIB, 8 * GIB, True) == (first.job.attempt, *first.verdict[1:4])
    assert (2, 8 * GIB, 10 * GIB, False, True, None) == (second.job.attempt, *second.verdict[1:])


def test_of_one_that_met_the_limit_of_a_retry_all_of_it_was_used() -> None:
    rows = attempts(("oom", 8, 1), ("oom", 12, 2))
    assert [(8 * GIB, 8 * GIB), (8 * GIB, 12 * GIB)] == [each.verdict[1:3] for each in check(rows).violations]


def attempts(*tries: tuple[str, float, float]) -> list[dict[str, Any]]:
    """Attempts at one job, newest first as in the store; each with how it ended, GiB requested and GiB used."""
    rows = [
        row(status, id=f"run{number}", requirement_memory_bytes=requested * GIB, memory_peak_bytes=used * GIB,
            workflow="flow", workflow_run=1, workflow_job={"job_id": 15, "step": "train", "attempt": number})
        for number, (status, requested, used) in enumerate(tries, 1)
    ]  # fmt: skip
    return rows[::-1]


def today(gigabytes: float) -> dict[Key, Requirement]:
    return {("flow", 1, 15): Requirement(memory_bytes=int(gigabytes * GIB))}


def test_a_job_that_completed_only_with_what_a_retry_gave_it_requests_too_little() -> None:
    for current in (today(8), {}):
        first, second = check(attempts(("oom", 8, 8), ("completed", 12, 10)), current=current).violations
        assert (1, "out of memory") == (first.job.attempt, first.verdict.cause)
        assert (2, 8 * GIB, 10 * GIB) == (second.job.attempt, *second.verdict[1:3])


def test_an_attempt_that_requested_less_than_the_spec_does_today_is_settled() -> None:
    """The spec was corrected, and the same run resumed."""
    tried = attempts(("oom", 8, 8), ("oom", 12, 12), ("completed", 16, 13))
    assert ([], []) == (check(tried, current=today(16)).violations, check(tried, current=today(16)).failures)


def test_the_last_attempt_is_judged_whatever_the_spec_says_today() -> None:
    (line,) = check(attempts(("completed", 8, 9)), current=today(16)).violations
    assert 9 * GIB == line.verdict.used


@pytest.mark.parametrize("status", ["cancelled", "lost", "failed"])
def test_a_job_that_completed_at_last_did_not_fail(status: str) -> None:
    checked = check(attempts((status, 8, 1), ("completed", 8, 1)))
    assert ([], 1) == (checked.failures, checked.tally.total)
    assert 1 == len(check(attempts(("completed", 8, 1), (status, 8, 1))).failures)


def test_a_run_that_was_detached_is_judged_and_did_not_fail() -> None:
    checked = check([row("detached", requirement_memory_bytes=1, memory_peak_bytes=2)])
    assert ([], [True]) == (checked.failures, [line.verdict.is_over for line in checked.verdicts])


def test_jobs_are_counted_and_not_their_attempts() -> None:
    rows = [*attempts(("failed", 8, 1), ("failed", 8, 1)), row("running", id="r"), row(id="n")]
    assert Tally(3, running=1, requested_nothing=1) == check(rows).tally


def test_jobs_of_several_workflows_come_one_workflow_after_the_other() -> None:
    rows = [
        row(id=f"{flow}{run}{number}", requirement_memory_bytes=1, memory_peak_bytes=2, workflow=flow,
            workflow_run=run, workflow_job={"job_id": number, "step": "train", "attempt": 1})
        for number in (2, 1) for flow, run in (("b", 2), ("a", 1), ("b", 1))
    ]  # fmt: skip
    order = [(line.job.workflow, line.job.workflow_run, line.job.id) for line in check(rows).verdicts]
    assert [("b", 2, 1), ("b", 2, 2), ("a", 1, 1), ("a", 1, 2), ("b", 1, 1), ("b", 1, 2)] == order


def test_a_peak_of_cpu_that_is_the_mean_is_at_least_that() -> None:
    """The run was too short for a rate."""
    short, long = (
        one(requirement_cpus=2, cpu_peak_percent=80.0, cpu_mean_percent=mean).verdicts[0].verdict
        for mean in (80.0, 60.0)
    )
    assert (True, False) == (short.at_least, long.at_least)


def test_jobs_of_a_workflow_come_in_the_order_of_their_numbers_and_runs_in_their_own() -> None:
    rows = [
        row(id=f"run{number}", requirement_memory_bytes=1, memory_peak_bytes=2,
            workflow_job={"job_id": number, "step": "train", "attempt": 1})
        for number in (10, 9, 2)
    ]  # fmt: skip
    assert [2, 9, 10] == [line.job.id for line in check(rows).verdicts]
    plain = [row(id=name, requirement_memory_bytes=1, memory_peak_bytes=2) for name in ("zz", "aa")]
    assert ["zz", "aa"] == [line.job.id for line in check(plain).verdicts]


@pytest.mark.parametrize(
    ("cpus", "peak", "mean", "wall", "expected"),
    [
        (1, 101.0, 99.8, 1.0, False),  # a busy thread, whose counter lagged behind
        (1, 114.0, 99.0, 1.5, False),  # by a whole tick, and under a limit that gave one share more
        (1, 116.0, 99.0, 1.5, True),
        (1, 190.0, 101.0, 0.9, False),  # too short for a peak
        (1, 200.0, 60.0, 5.0, True),  # two threads for a while
        (1, 130.0, 125.0, 10.0, True),  # all along
        (1, 115.0, 112.0, 0.05, False),  # 6 ms too much
        (1, 101.5, 101.5, 60.0, False),  # accounts of CPU time differ by 2 %
        (2, 229.0, 190.0, 9.0, False),
        (2, 231.0, 190.0, 9.0, True),
        (8, 950.5, 500.0, 9900.0, True),
        (64, 6700.0, 6300.0, 100.0, False),
        (0.5, 100.0, 49.0, 100.0, True),
    ],
)
def test_more_cpus_than_requested_are_distinguished_from_readings_at_odd_moments(
    cpus: float, peak: float, mean: float, wall: float, expected: bool
) -> None:
    run = row(cpu_peak_percent=peak, cpu_mean_percent=mean, wall_seconds=wall)
    assert expected is uses_more_cpus(run, cpus)


def test_of_cpus_that_the_kernel_enforced_no_job_used_more() -> None:
    """Whatever the rate of a moment, or a meter that counts otherwise, says."""
    figures: dict[str, Any] = {
        "requirement_cpus": 0.5,
        "cpu_peak_percent": 61.9,
        "cpu_mean_percent": 55.0,
        "wall_seconds": 9.0,
    }
    assert [("CPU", False)] == verdicts_of(one(enforced=["memory", "cpus"], **figures))
    assert [("CPU", True)] == verdicts_of(one(enforced=["memory"], **figures))


@pytest.mark.parametrize("part", [{"job_id": None, "step": None, "attempt": None}, {"job_id": 3, "attempt": None}])
def test_a_job_of_which_the_record_says_little_is_judged(part: dict[str, Any]) -> None:
    (verdict,) = one(requirement_memory_bytes=GIB, memory_peak_bytes=2 * GIB, workflow_job=part).violations
    expected = (part["job_id"] or "run1", "train", 1)
    assert expected == (verdict.job.id, verdict.job.step, verdict.job.attempt)
