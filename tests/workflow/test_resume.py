from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.resume import fingerprint, reasons_to_run, renumber
from tests.workflow.attempted import an_attempt
from tests.workflow.jobs import a_job
from tests.workflow.spec.writing import job_of, plan_of


def done(job: Job, *, second: int = 0, attempt: int = 1) -> Attempt:
    """The attempt that a job, as it is now, completed with."""
    return an_attempt(job.number, attempt=attempt, second=second, fingerprint=fingerprint(job))


def reasons(jobs: Iterable[Job], *attempts: Attempt) -> dict[int, str]:
    return reasons_to_run(list(jobs), attempts)


@pytest.mark.parametrize("field", ["env: {A: b}", "cwd: elsewhere", "shell: /bin/bash", "inputs: [there]"])
def test_a_job_is_another_when_what_it_executes_or_where_is_another(tmp_path: Path, field: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "there").touch()
    assert fingerprint(job_of(tmp_path, "labels: {}")) != fingerprint(job_of(tmp_path, field))


@pytest.mark.parametrize(
    "field", ["labels: {a: b}", "priority: 3", "retry: {times: 2}", "resource_requirements: {cpus: 1}"]
)
def test_a_job_is_the_same_when_only_its_request_labels_priority_or_retries_change(tmp_path: Path, field: str) -> None:
    assert fingerprint(job_of(tmp_path, "labels: {}")) == fingerprint(job_of(tmp_path, field))


def test_a_program_that_an_earlier_job_makes_does_not_make_another_job(tmp_path: Path) -> None:
    """Before it is there the command goes to the shell, and after that it is executed itself."""
    spec = "jobs: [{name: a, command: ./made --now}]"
    (before,) = plan_of(tmp_path, spec).jobs
    (tmp_path / "made").touch(mode=0o755)
    (after,) = plan_of(tmp_path, spec).jobs
    assert before.command != after.command
    assert fingerprint(before) == fingerprint(after)


def test_an_input_that_is_written_to_makes_another_job(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("1")
    job = job_of(tmp_path, "inputs: [data]")
    before = fingerprint(job)
    assert before == fingerprint(job)
    (tmp_path / "data").write_text("12")
    assert before != fingerprint(job)
    (tmp_path / "data").write_text("1")
    os.utime(tmp_path / "data", (1, 1))
    touched = fingerprint(job)
    assert before != touched
    (tmp_path / "data").unlink()
    assert len({before, touched, fingerprint(job)}) == 3


def test_what_completed_and_is_as_it_was_is_done() -> None:
    jobs = [a_job(1), a_job(2, 1)]
    assert {} == reasons(jobs, done(jobs[0]), done(jobs[1], second=1))


@pytest.mark.parametrize("status", ["failed", "oom", "timeout", "killed", "cancelled", "lost", "running"])
def test_what_did_not_complete_runs(status: str) -> None:
    assert {1: f"{status} before"} == reasons([a_job(1)], an_attempt(1, status))


def test_what_was_never_begun_runs_and_so_does_all_that_needs_it() -> None:
    jobs = [a_job(1), a_job(2), a_job(3, 1), a_job(4, 2)]
    assert {1: "not run yet", 3: "job1 runs again"} == reasons(
        jobs, done(jobs[1]), done(jobs[2], second=1), done(jobs[3], second=1)
    )


def test_a_job_whose_command_changed_runs_with_all_that_needs_it() -> None:
    jobs = [a_job(1), a_job(2, 1), a_job(3, 2)]
    attempts = [done(job, second=job.number) for job in jobs]
    jobs[1] = jobs[1]._replace(command=["false"])
    assert {2: "its command or an input changed", 3: "job2 runs again"} == reasons(jobs, *attempts)


def test_a_job_whose_output_is_gone_runs(tmp_path: Path) -> None:
    (tmp_path / "made").touch()
    job = job_of(tmp_path, "outputs: [made]")
    attempt = done(job)
    assert {} == reasons([job], attempt)
    (tmp_path / "made").unlink()
    assert {1: "made is missing"} == reasons([job], attempt)


def test_a_job_that_was_to_run_again_and_did_not_complete_is_not_done() -> None:
    job = a_job(1)
    assert {1: "lost before"} == reasons([job], done(job, second=1), an_attempt(1, "lost", attempt=2, second=2))


def test_a_job_that_completed_after_failures_is_done() -> None:
    job = a_job(1)
    assert {} == reasons([job], done(job, attempt=2, second=2), an_attempt(1, "oom", second=1))


def test_the_last_attempt_is_that_of_the_highest_number_whatever_the_clock_said() -> None:
    job = a_job(1)
    assert {1: "failed before"} == reasons([job], done(job, second=9), an_attempt(1, "failed", attempt=2, second=1))


def test_what_was_done_before_something_it_needs_ran_again_runs_too() -> None:
    jobs = [a_job(1), a_job(2, 1), a_job(3, 2)]
    attempts = [done(jobs[0], second=1), done(jobs[1], second=2), done(jobs[2], second=3)]
    again = done(jobs[0], attempt=2, second=4)
    assert {2: "job1 ran again", 3: "job2 runs again"} == reasons(jobs, *attempts, again)


def names(plan: Plan) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {job.name: (job.number, job.blocked_by) for job in plan.jobs}


def test_jobs_keep_their_numbers_and_new_ones_get_new_ones(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "jobs:\n- {name: new, command: a, blocked_by: [b]}\n- {name: b, command: a, blocked_by: [a]}\n"
        "- {name: a, command: a}\n",
    )
    numbers = {"a": 1, "b": 2, "removed": 3}
    assert {"a": (1, ()), "b": (2, (1,)), "new": (4, (2,))} == names(renumber(plan, numbers))


def test_a_job_that_now_waits_for_a_new_one_runs_after_it(tmp_path: Path) -> None:
    """The new one stands first in the spec, and gets the last number."""
    spec = "jobs:\n- {name: new, command: a}\n- {name: a, command: a}\n- {name: b, command: a, blocked_by: [new, a]}\n"
    jobs = renumber(plan_of(tmp_path, spec), {"a": 1, "b": 2}).jobs
    assert (1, 3) == jobs[1].blocked_by
    assert {3: "not run yet", 2: "new runs again"} == reasons(jobs, done(jobs[0], second=1), done(jobs[1], second=2))


def test_jobs_of_a_sweep_share_what_they_wait_for_also_with_other_numbers(tmp_path: Path) -> None:
    sweep = "{name: '%s_{i}', command: a, parameters: {i: '1:3'}%s}"
    plan = plan_of(tmp_path, f"jobs:\n- {sweep % ('a', '')}\n- {sweep % ('b', ', blocked_by: [a_*]')}\n")
    first, second, _ = renumber(plan, {"a_1": 7}).jobs[-3:]
    assert (7, 8, 9) == first.blocked_by
    assert first.blocked_by is second.blocked_by
