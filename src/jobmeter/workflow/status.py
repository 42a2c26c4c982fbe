"""The status of a run of a workflow, from its plan and the runs of its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.analyse.outcome import in_words
from jobmeter.model import Status
from jobmeter.workflow.attempts import Attempt, latest
from jobmeter.workflow.directory import StoredPlan
from jobmeter.workflow.settled import SettledJob

ORDER = (
    Status.COMPLETED,
    Status.RUNNING,
    "waiting",
    "blocked",
    Status.FAILED,
    Status.OOM,
    Status.TIMEOUT,
    Status.KILLED,
    Status.CANCELLED,
    Status.LOST,
)

FAILED = (Status.FAILED, Status.OOM, Status.TIMEOUT, Status.KILLED)


class JobStatus(NamedTuple):
    number: int
    name: str
    status: str  # of its last attempt, or `waiting` or `blocked`
    attempt: Attempt | None
    reason: str  # empty where the status says all


class WorkflowStatus(NamedTuple):
    jobs: list[JobStatus]
    being_run: bool

    @property
    def counts(self) -> dict[str, int]:
        counted = Counter(job.status for job in self.jobs)
        return {str(status): counted[status] for status in ORDER if counted[status]}

    @property
    def state(self) -> str:
        """One word: running, completed, failed, or stopped, if jobs are left to run and no process runs them."""
        if self.being_run:
            return "running"
        counts = self.counts
        if counts.get(Status.COMPLETED, 0) == len(self.jobs):
            return "completed"
        return "failed" if any(status in counts for status in FAILED) else "stopped"


def status_of(
    plan: StoredPlan, attempts: Sequence[Attempt], *, being_run: bool, settled: Sequence[SettledJob] = ()
) -> WorkflowStatus:
    """The status of each job of a stored plan, in its order; `settled` are the jobs that were given up."""
    last = latest(list(attempts))
    if being_run:
        # A job that failed and was not given up will be tried again; so will one that failed under an earlier runner.
        ended = {(each.number, each.attempt) for each in settled}
        unchanged = (Status.COMPLETED, Status.RUNNING)
        last = {n: each for n, each in last.items() if each.status in unchanged or (n, each.attempt) in ended}
    else:
        # The runner is gone, and with it the only process that would record the end of a running attempt.
        last = {number: _lost_if_running(attempt) for number, attempt in last.items()}
    jobs = {job["job_id"]: job for job in plan["jobs"]}
    # Jobs that need a job that was cancelled with the whole workflow wait: they are not blocked.
    cancelled_alone = {(each.number, each.attempt) for each in settled if each.is_cancelled_alone}
    given_up = {
        number
        for number, attempt in last.items()
        if number in jobs and (attempt.status in FAILED or (number, attempt.attempt) in cancelled_alone)
    }
    blocked = _blocked(plan, given_up)
    statuses = []
    for number, job in jobs.items():
        attempt = last.get(number)
        if attempt is None and number in blocked:
            by = blocked[number]
            why = "was cancelled" if last[by].status == Status.CANCELLED else "failed"
            reason = f"needs {jobs[by]['name']}, which {why}"
            statuses.append(JobStatus(number, job["name"], "blocked", None, reason))
        elif attempt is None:
            statuses.append(JobStatus(number, job["name"], "waiting", None, ""))
        else:
            reason = "" if attempt.status in (Status.COMPLETED, Status.RUNNING) else in_words(attempt.outcome)
            statuses.append(JobStatus(number, job["name"], attempt.status, attempt, reason))
    return WorkflowStatus(statuses, being_run)


def _lost_if_running(attempt: Attempt) -> Attempt:
    if attempt.status != Status.RUNNING:
        return attempt
    return attempt._replace(outcome=attempt.outcome._replace(status=Status.LOST))


def _blocked(plan: StoredPlan, failed: set[int]) -> dict[int, int]:
    """Job → the job that was given up and that it needs, directly or indirectly."""
    following: dict[int, list[int]] = {}
    actions = {job["job_id"] for job in plan["jobs"] if job.get("is_action")}
    for job in plan["jobs"]:
        if job.get("runs_after_failure"):
            continue
        for needed in job["blocked_by"]:
            if needed not in actions:
                following.setdefault(needed, []).append(job["job_id"])
    blocked: dict[int, int] = {}
    for number in sorted(failed):
        doomed = [number]
        while doomed:
            for dependant in following.get(doomed.pop(), ()):
                if dependant not in blocked and dependant not in failed:
                    blocked[dependant] = number
                    doomed.append(dependant)
    return blocked
