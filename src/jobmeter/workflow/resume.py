"""What of a workflow need not run again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence

from jobmeter.model import Status
from jobmeter.workflow.attempts import Attempt, latest
from jobmeter.workflow.graph import order
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.spec.plan.command import without_shell


def fingerprint(job: Job) -> str:
    """What tells whether a job is still the same: what it executes, where, and its input files as they are now."""
    inputs = [[path, *_state(path)] for path in job.inputs]
    content = [without_shell(job.command), job.directory, job.environment, job.container, inputs]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _state(path: str) -> list[int]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


def reasons_to_run(jobs: Sequence[Job], attempts: Iterable[Attempt]) -> dict[int, str]:
    """Job → why it must run; those that are not in it are done.

    One is done when its last attempt completed, its command and inputs are as they were then, its outputs
    are there, and all it needs is done too, and was before it.
    """
    last = latest(list(attempts))
    by_number = {job.number: job for job in jobs}
    reasons: dict[int, str] = {}
    for job in order(jobs):
        why = _reason(job, last, reasons, by_number)
        if why is not None:
            reasons[job.number] = why
    return reasons


def _reason(job: Job, last: Mapping[int, Attempt], reasons: Mapping[int, str], jobs: Mapping[int, Job]) -> str | None:
    attempt = last.get(job.number)
    if attempt is None:
        return "not run yet"
    if attempt.status != Status.COMPLETED:
        return f"{attempt.status} before"
    for number in job.blocked_by:
        if number in reasons:
            return f"{jobs[number].name} runs again"
        if last[number].started > attempt.started:
            # The runner was stopped after the one and before the other.
            return f"{jobs[number].name} ran again"
    if attempt.fingerprint != fingerprint(job):
        return "its command or an input changed"
    missing = [path for path in job.outputs if not os.path.exists(path)]
    return f"{os.path.relpath(missing[0], job.directory)} is missing" if missing else None


def renumber(plan: Plan, numbers_before: Mapping[str, int]) -> Plan:
    """The plan with the numbers its jobs had before; new ones get new numbers."""
    following = max(numbers_before.values(), default=0) + 1
    numbers: dict[int, int] = {}
    for job in plan.jobs:
        if job.name in numbers_before:
            numbers[job.number] = numbers_before[job.name]
        else:
            numbers[job.number] = following
            following += 1
    moved: dict[int, tuple[int, ...]] = {}  # the jobs of a sweep share the tuple of those they wait for
    jobs = []
    for job in plan.jobs:
        same = id(job.blocked_by)
        if same not in moved:
            moved[same] = tuple(sorted(numbers[number] for number in job.blocked_by))
        jobs.append(job._replace(number=numbers[job.number], blocked_by=moved[same]))
    return plan._replace(jobs=sorted(jobs, key=lambda job: job.number))
