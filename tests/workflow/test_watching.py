from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.status import status_of
from jobmeter.workflow.watching import view_of
from tests.workflow.attempted import an_attempt
from tests.workflow.jobs import a_job, a_sweep

BEGAN = datetime(2026, 1, 31, 12, 0, 0, tzinfo=timezone.utc).timestamp()
JOBS = [*a_sweep(1, 4, step="train", runtime_seconds=60.0), a_job(5, 1, 2, 3, 4, name="report", runtime_seconds=5.0)]
PLAN: dict[str, Any] = {
    "started": "2026-01-31T12:00:00.000Z",
    "jobs": [{"job_id": job.number, "name": job.name, "blocked_by": list(job.blocked_by)} for job in JOBS],
}


def view(*attempts: Attempt, now: float) -> Any:
    return view_of(JOBS, attempts, status_of(PLAN, attempts, being_run=True), BEGAN, BEGAN + now)


def test_running_jobs_are_shown_with_their_time_the_oldest_first() -> None:
    seen = view(an_attempt(2, "running", second=5), an_attempt(1, "running", second=2), now=12.0)
    assert [("job1", 10.0), ("job2", 7.0)] == [(job.name, round(job.seconds, 3)) for job in seen.running]
    assert {"completed": 0, "running": 2, "waiting": 3} == seen.counts
    assert (5, 12.0, 0) == (seen.jobs, round(seen.seconds, 3), seen.settled)


def test_the_time_left_follows_from_what_jobs_request_until_one_of_their_kind_has_ended() -> None:
    running = [an_attempt(number, "running", second=0) for number in (1, 2)]
    # Two at a time: 50 and 50 of the two that run, 60 and 60 of two more, and the report after all of them.
    assert 112.5 == view(*running, now=10.0).seconds_left
    ended = an_attempt(1, "completed", second=0)._replace(step="train", wall_seconds=20.0)
    assert 30.0 > view(ended, an_attempt(2, "running", second=0), now=15.0).seconds_left


def test_nothing_is_left_of_what_is_settled() -> None:
    done = [an_attempt(number, "completed", second=number) for number in range(1, 6)]
    assert 0.0 == view(*done, now=20.0).seconds_left
