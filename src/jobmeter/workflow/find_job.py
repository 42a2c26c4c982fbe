"""Finds jobs of a workflow run by number, name, sweep or glob."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from jobmeter.errors import UsageError
from jobmeter.suggestion import suggest
from jobmeter.workflow.directory import StoredPlan

_NAMED = 5  # the most job names that a message lists


class JobName(NamedTuple):
    number: int
    name: str


def jobs_of(plan: StoredPlan) -> list[JobName]:
    """All jobs of a stored plan."""
    return [JobName(job["job_id"], job["name"]) for job in plan["jobs"]]


def find_jobs(plan: StoredPlan, text: str) -> list[JobName]:
    """The jobs of a stored plan that `text` names, at least one. Raises UsageError if there is none."""
    jobs = [(JobName(job["job_id"], job["name"]), job["step"]) for job in plan["jobs"]]
    for matches in (
        [job for job, _ in jobs if job.name == text],
        [job for job, _ in jobs if text.isdecimal() and job.number == int(text)],
        [job for job, step in jobs if step == text],
        [job for job, _ in jobs if fnmatchcase(job.name, text)],
    ):
        if matches:
            return matches
    if text.isdecimal():
        hint = f"They are numbered 1 to {max(job.number for job, _ in jobs)}." if jobs else "It has none."
    else:
        hint = suggest(text, [job.name for job, _ in jobs])
    raise UsageError(f"workflow {plan['name']} has no job {text!r}. {hint}")


def find_job(plan: StoredPlan, text: str) -> JobName:
    """The one job that `text` names. Raises UsageError if there is none, or more than one."""
    jobs = find_jobs(plan, text)
    if len(jobs) > 1:
        listed = ", ".join(job.name for job in jobs[:_NAMED]) + (", …" if len(jobs) > _NAMED else "")
        raise UsageError(f"{text!r} means {len(jobs)} jobs: {listed}. Name one of them.")
    return jobs[0]
