"""What jobs used against what they requested, and how those that failed did. Each run is judged by `analyse.overuse`.

Of a job of a workflow with several attempts the last one is judged, by what the job requests: a retry may have given it
more. An earlier one is judged too, for each resource of which the job requests no more today than that attempt did: a
job that ran out of memory, and completed with what a retry gave it, still requests too little, unless its spec was
changed since. What a job requests today is what the plan of the run has; without a plan, what its first attempt
requested. A job failed if its last attempt did.
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

Key = tuple[str | None, int | None, int | str]
"""One job of one run of a workflow, whatever the attempt; or a run outside of workflows."""


class CheckedJob(NamedTuple):
    """The job that a run was of."""

    id: int | str  # its number in the workflow; of a run outside of workflows, the run's id
    name: str
    step: str  # its name as the spec has it, the same for all jobs of a sweep
    attempt: int
    run: str  # the run's id: numbers of jobs are the same in every run of a workflow
    workflow: str | None = None
    workflow_run: int | None = None

    @property
    def key(self) -> Key:
        return self.workflow, self.workflow_run, self.id


class JobVerdict(NamedTuple):
    """One resource of one run, and the job that the run was of."""

    job: CheckedJob
    verdict: Verdict


class Failure(NamedTuple):
    """A job that did not complete, for another reason than what it requested."""

    job: CheckedJob
    status: str
    cause: str


class Tally(NamedTuple):
    """How many jobs there are; one of several attempts is one."""

    total: int
    running: int = 0
    requested_nothing: int = 0  # of those that do not run


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
    """Every resource that a job requested and of which is known what it used; over-use from `min_over` percent on.

    Rows are newest first; `current` has what jobs of several attempts request today. Without `everything` only the
    violations. Verdicts come workflow by workflow, in the order of the jobs' numbers; other runs in that of the rows.
    """
    jobs: dict[Key, list[tuple[CheckedJob, StoredRun]]] = {}
    for row in rows:
        job = job_of(row)
        jobs.setdefault(job.key, []).append((job, row))
    verdicts: list[JobVerdict] = []
    failures: list[Failure] = []
    running = requested_nothing = 0
    for key in _ordered(jobs):
        attempts = sorted(jobs[key], key=lambda attempt: attempt[0].attempt)
        # Of two of the same number, the newest.
        job, last = max(jobs[key], key=lambda attempt: attempt[0].attempt)
        today = _today(current.get(key), attempts[0][1]) if len(attempts) > 1 else {}
        for earlier, row in attempts:
            if row is not last:
                unsettled = [r for r in today if today[r] <= row.get(r.requested, 0)]
                verdicts += _verdicts(row, earlier, min_over, everything, unsettled, today)
        last_verdicts = list(_verdicts(last, job, min_over, everything, RESOURCES, today))
        verdicts += last_verdicts
        status = Status(last["status"])
        running += status is Status.RUNNING
        requested_nothing += status is not Status.RUNNING and not any(
            last.get(resource.requested) for resource in RESOURCES
        )
        if status not in _NO_FAILURE and not any(each.verdict.cause for each in last_verdicts):
            cause = in_words(Outcome(status, last.get("exit_code"), last.get("signal")))
            failures.append(Failure(job, status, cause))
    return Checked(verdicts, failures, Tally(len(jobs), running, requested_nothing))


def _ordered(keys: Iterable[Key]) -> list[Key]:
    """Runs of workflows as they come, each with its jobs in the order of their numbers."""
    places: dict[tuple[str | None, int | None], int] = {}
    for workflow, run, _ in (keys := list(keys)):
        places.setdefault((workflow, run), len(places))
    return sorted(keys, key=lambda key: (places[key[:2]], key[2] if isinstance(key[2], int) else 0))


def _today(current: Requirement | None, first: StoredRun) -> dict[Resource, float]:
    """What a job requests, however much more a retry gave it."""
    amounts = {r: first.get(r.requested) if current is None else getattr(current, r.field) for r in RESOURCES}
    return {resource: amount for resource, amount in amounts.items() if amount is not None}


def job_of(row: StoredRun) -> CheckedJob:
    part: StoredRun = row.get("workflow_job") or {}
    name = str(row["name"])
    step, attempt = str(part.get("step", name)), int(part.get("attempt", 1))
    number = part["job_id"] if part else row["id"]
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
            used = verdict.used  # of one that met the limit of a retry, all of that
            verdict = judge({**run, resource.requested: today[resource]}, resource, min_over)
            verdict = verdict and verdict._replace(used=max(used, verdict.used))
        if verdict is not None and (verdict.is_over or everything):
            yield JobVerdict(job, verdict)
