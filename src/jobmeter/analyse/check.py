"""Compare what jobs used with what they requested, and list the jobs that failed. `analyse.overuse` judges each run.

A job of a workflow can have several attempts. The last attempt is judged against what the job requests, as a retry may
have been given more. An earlier attempt is judged too, for each resource of which the job requests no more today than
that attempt did: a job that ran out of memory, and completed with what a retry gave it, still requests too little,
unless its spec was changed since. What a job requests today is what the plan of the run says; without a plan, what its
first attempt requested. A job failed if its last attempt did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobmeter.analyse.outcome import in_words
from jobmeter.analyse.overuse import LEAST_OVER, Verdict, judge
from jobmeter.analyse.resource import RESOURCES, Resource
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.light_typing import NamedTuple
from jobmeter.model import Outcome, Requirement, Status

_NO_FAILURE = (Status.COMPLETED, Status.RUNNING, Status.DETACHED)
_REQUESTED = tuple(resource.requested for resource in RESOURCES)

Key = tuple[str | None, int | None, int | str]
"""Identifies a job in one run of a workflow, the same for all its attempts; or a run outside of workflows."""


class CheckedJob(NamedTuple):
    """The job that a run executed."""

    id: int | str  # number in the workflow; for a run outside of workflows, the run's id
    name: str
    step: str  # name in the spec, the same for all jobs of a sweep
    attempt: int
    run: str  # the run's id, as job numbers are the same in every run of a workflow
    workflow: str | None = None
    workflow_run: int | None = None

    @property
    def key(self) -> Key:
        return self.workflow, self.workflow_run, self.id


class JobVerdict(NamedTuple):
    """The verdict on one resource of one run, and the job of that run."""

    job: CheckedJob
    verdict: Verdict


class Failure(NamedTuple):
    """A job that failed for another reason than too small a request."""

    job: CheckedJob
    status: str
    cause: str


class Tally(NamedTuple):
    """Numbers of jobs; a job with several attempts counts once."""

    total: int
    running: int = 0
    requested_nothing: int = 0  # of the jobs that are not running


class Checked(NamedTuple):
    verdicts: list[JobVerdict]
    failures: list[Failure]
    tally: Tally

    @property
    def violations(self) -> list[JobVerdict]:
        return [each for each in self.verdicts if each.verdict.is_over]


def check(
    rows: Iterable[StoredRun],
    min_over: float = LEAST_OVER,
    *,
    everything: bool = True,
    current: Mapping[Key, Requirement] = {},
) -> Checked:
    """Judge every resource that a job requested and whose usage is known; over-use begins at `min_over` percent.

    Rows are newest first. `current` has what jobs with several attempts request today. Without `everything`, only the
    violations are returned. Verdicts are ordered by run of a workflow, then by job number; other runs stay as the rows.
    """
    jobs: dict[Key, list[tuple[CheckedJob, StoredRun]]] = {}
    for row in rows:
        job = job_of(row)
        jobs.setdefault(job.key, []).append((job, row))
    verdicts: list[JobVerdict] = []
    failures: list[Failure] = []
    running = requested_nothing = 0
    for key in _ordered(jobs):
        # Of two attempts with the same number this is the newest: rows are newest first.
        job, last = max(jobs[key], key=_attempt)
        today: dict[Resource, float] = {}
        if len(jobs[key]) > 1:
            attempts = sorted(jobs[key], key=_attempt)
            today = _today(current.get(key), attempts[0][1])
            for earlier, row in attempts:
                if row is not last:
                    unsettled = [r for r in today if today[r] <= row.get(r.requested, 0)]
                    verdicts += _verdicts(row, earlier, min_over, everything, unsettled, today)
        last_verdicts = list(_verdicts(last, job, min_over, everything, RESOURCES, today))
        verdicts += last_verdicts
        status = Status(last["status"])
        running += status is Status.RUNNING
        requested_nothing += status is not Status.RUNNING and not any(map(last.get, _REQUESTED))
        if status not in _NO_FAILURE and not any(each.verdict.cause for each in last_verdicts):
            cause = in_words(Outcome(status, last.get("exit_code"), last.get("signal")))
            failures.append(Failure(job, status, cause))
    return Checked(verdicts, failures, Tally(len(jobs), running, requested_nothing))


def _attempt(job_and_row: tuple[CheckedJob, StoredRun]) -> int:
    return job_and_row[0].attempt


def _ordered(keys: Iterable[Key]) -> list[Key]:
    """The keys sorted: runs of workflows in the order of their first key, the jobs of each by number."""
    places: dict[tuple[str | None, int | None], int] = {}
    for workflow, run, _ in (keys := list(keys)):
        places.setdefault((workflow, run), len(places))
    return sorted(keys, key=lambda key: (places[key[:2]], key[2] if isinstance(key[2], int) else 0))


def _today(current: Requirement | None, first: StoredRun) -> dict[Resource, float]:
    """What a job requests today, without what a retry gave it in addition."""
    amounts = {r: first.get(r.requested) if current is None else getattr(current, r.field) for r in RESOURCES}
    return {resource: amount for resource, amount in amounts.items() if amount is not None}


def job_of(row: StoredRun) -> CheckedJob:
    part: StoredRun = row.get("workflow_job") or {}
    name = str(row["name"])
    step, attempt = str(part.get("step") or name), int(part.get("attempt") or 1)
    number = row["id"] if part.get("job_id") is None else part["job_id"]
    return CheckedJob(number, name, step, attempt, row["id"], row.get("workflow"), row.get("workflow_run"))


def _verdicts(
    run: StoredRun,
    job: CheckedJob,
    min_over: float,
    everything: bool,
    resources: Iterable[Resource],
    today: Mapping[Resource, float],
) -> Iterator[JobVerdict]:
    for resource in resources:
        verdict = judge(run, resource, min_over)
        if verdict is not None and today.get(resource, verdict.requested) * resource.each < verdict.requested:
            used = verdict.used  # for a retry that met its limit, that whole limit
            verdict = judge({**run, resource.requested: today[resource]}, resource, min_over)
            verdict = verdict and verdict._replace(used=max(used, verdict.used))
        if verdict is not None and (verdict.is_over or everything):
            yield JobVerdict(job, verdict)
