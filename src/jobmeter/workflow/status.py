"""How far a run of a workflow is: its plan and the runs of its jobs, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.analyse.outcome import in_words
from jobmeter.model import Status
from jobmeter.workflow.attempts import Attempt, latest
from jobmeter.workflow.directory import StoredPlan

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
        """One word: running, completed, failed, or stopped: something is left to do and nobody does it."""
        if self.being_run:
            return "running"
        counts = self.counts
        if counts.get(Status.COMPLETED, 0) == len(self.jobs):
            return "completed"
        return "failed" if any(status in counts for status in FAILED) else "stopped"


def status_of(plan: StoredPlan, attempts: Sequence[Attempt], *, being_run: bool) -> WorkflowStatus:
    """The status of each job of a plan as it was kept, in its order."""
    last = latest(list(attempts))
    if being_run:
        # What failed under an earlier runner is what the present one is there for.
        begun = plan["started"]
        last = {n: each for n, each in last.items() if each.status == Status.COMPLETED or each.started >= begun}
    else:
        # Nobody would notice its end: the runner is gone.
        last = {number: _lost_if_running(attempt) for number, attempt in last.items()}
    jobs = {job["job_id"]: job for job in plan["jobs"]}
    blocked = _blocked(plan, {n for n, attempt in last.items() if attempt.status in FAILED and n in jobs})
    statuses = []
    for number, job in jobs.items():
        attempt = last.get(number)
        if attempt is None and number in blocked:
            by = jobs[blocked[number]]["name"]
            statuses.append(JobStatus(number, job["name"], "blocked", None, f"needs {by}, which failed"))
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
    """Job → the failed one it needs, near or far."""
    following: dict[int, list[int]] = {}
    for job in plan["jobs"]:
        for needed in job["blocked_by"]:
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
