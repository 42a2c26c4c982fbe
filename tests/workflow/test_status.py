from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.settled import SettledJob
from jobmeter.workflow.status import WorkflowStatus, status_of
from tests.workflow.attempted import an_attempt

CHAIN: dict[str, Any] = {
    "started": "2026-01-31T12:00:10.000Z",
    "jobs": [
        {"job_id": 1, "name": "a", "blocked_by": []},
        {"job_id": 2, "name": "b", "blocked_by": [1]},
        {"job_id": 3, "name": "c", "blocked_by": [2]},
        {"job_id": 4, "name": "d", "blocked_by": []},
    ],
}


def status(*attempts: Attempt, being_run: bool = False, settled: Sequence[SettledJob] = ()) -> WorkflowStatus:
    return status_of(CHAIN, attempts, being_run=being_run, settled=settled)


def statuses(workflow: WorkflowStatus) -> list[str]:
    return [job.status for job in workflow.jobs]


def test_what_has_not_begun_waits() -> None:
    workflow = status(an_attempt(1, second=11), an_attempt(2, "running", second=12), being_run=True)
    assert ["completed", "running", "waiting", "waiting"] == statuses(workflow)
    assert {"completed": 1, "running": 1, "waiting": 2} == workflow.counts
    assert "running" == workflow.state


def test_what_needs_a_failed_job_is_blocked_near_and_far_with_the_reason() -> None:
    workflow = status(an_attempt(1, "failed"))
    assert ["failed", "blocked", "blocked", "waiting"] == statuses(workflow)
    assert ["failed with exit code 1", "needs a, which failed", "needs a, which failed", ""] == [
        job.reason for job in workflow.jobs
    ]
    assert "failed" == workflow.state


def test_what_needs_a_cancelled_job_waits_and_the_whole_is_stopped() -> None:
    workflow = status(an_attempt(1, "cancelled"))
    assert ["cancelled", "waiting", "waiting", "waiting"] == statuses(workflow)
    assert "stopped" == workflow.state


def test_a_job_that_ran_when_its_runner_was_killed_is_lost() -> None:
    workflow = status(an_attempt(1, "running"))
    assert ["lost", "waiting", "waiting", "waiting"] == statuses(workflow)
    assert "stopped" == workflow.state


def test_all_completed_is_completed() -> None:
    assert "completed" == status(*map(an_attempt, (1, 2, 3, 4))).state


def test_the_last_attempt_decides_the_status_of_a_job() -> None:
    first, second = an_attempt(1, "oom", second=1), an_attempt(1, attempt=2, second=2)
    assert "completed" == status(second, first).jobs[0].status


@pytest.mark.parametrize("ended", ["failed", "lost", "cancelled", "oom"])
def test_what_an_earlier_runner_left_undone_waits_for_the_present_one(ended: str) -> None:
    before = an_attempt(1, ended, second=1)
    assert ["waiting"] * 4 == statuses(status(before, being_run=True))
    again = an_attempt(1, ended, attempt=2, second=20)
    assert ended == status(before, again, being_run=True, settled=[SettledJob(1, 2, ended)]).jobs[0].status


def test_a_job_that_failed_and_is_tried_again_waits_and_so_does_what_needs_it() -> None:
    first = an_attempt(1, "oom")
    assert ["waiting"] * 4 == statuses(status(first, being_run=True))
    given_up = status(first, being_run=True, settled=[SettledJob(1, 1, "oom")])
    assert ["oom", "blocked", "blocked", "waiting"] == statuses(given_up)


@pytest.mark.parametrize("being_run", [True, False])
def test_what_needs_a_job_that_was_cancelled_alone_is_blocked(being_run: bool) -> None:
    workflow = status(
        an_attempt(1, "cancelled"), being_run=being_run, settled=[SettledJob(1, 1, "cancelled", "request")]
    )
    assert ["cancelled", "blocked", "blocked", "waiting"] == statuses(workflow)
    assert "needs a, which was cancelled" == workflow.jobs[1].reason


def test_an_attempt_at_a_job_that_left_the_spec_is_no_job_of_it() -> None:
    assert ["waiting"] * 4 == statuses(status(an_attempt(9, "failed")))
