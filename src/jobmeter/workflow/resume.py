"""Determines which jobs of a workflow need not run again."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobmeter.model import Status
from jobmeter.workflow.attempts import Attempt, latest
from jobmeter.workflow.graph import order
from jobmeter.workflow.plan import Job, Plan, UserData
from jobmeter.workflow.spec.plan.command import without_shell
from jobmeter.workflow.user_data import DataDirectory


def fingerprint(job: Job) -> str:
    """A hash of what a job executes, where, and the state of its input files: it differs if the job has changed."""
    inputs = [[path, *_state(path)] for path in job.inputs]
    content: list[Any] = [without_shell(job.command), job.directory, job.environment, job.container, inputs]
    if job.initial_data:
        content.append(job.initial_data)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _state(path: str) -> list[int]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


def reasons_to_run(
    jobs: Sequence[Job],
    attempts: Iterable[Attempt],
    data: DataDirectory | None = None,
    user_data: Mapping[str, UserData] = {},
) -> dict[int, str]:
    """Job → why it must run; jobs that are absent are done.

    A job is done if its last attempt completed, its command and inputs have not changed since, its outputs exist and
    are not older than its inputs, and all jobs that it needs are done, and started before it. Ephemeral user data are
    made again if a job that reads them runs again.
    """
    last = latest(list(attempts))
    by_number = {job.number: job for job in jobs}
    ordered = order(jobs)
    again: dict[int, str] = {}
    while True:
        reasons: dict[int, str] = {}
        for job in ordered:
            why = again.get(job.number) or _reason(job, last, reasons, by_number)
            if why is not None:
                reasons[job.number] = why
        missing = _makers_needed(jobs, reasons, data, user_data) if data is not None else {}
        if not missing:
            return reasons
        again |= missing


def _reason(job: Job, last: Mapping[int, Attempt], reasons: Mapping[int, str], jobs: Mapping[int, Job]) -> str | None:
    attempt = last.get(job.number)
    if attempt is None:
        return "not run yet"
    if attempt.status != Status.COMPLETED:
        return f"{attempt.status} before"
    for number in job.blocked_by:
        if jobs[number].is_action:
            continue  # the result of a job does not depend on what an action does
        if number in reasons:
            return f"{jobs[number].name} runs again"
        if last[number].started > attempt.started:
            # The runner was stopped after that job had run again, and before this one did.
            return f"{jobs[number].name} ran again"
    if attempt.fingerprint != fingerprint(job):
        return "its command or an input changed"
    missing = [path for path in job.outputs if not os.path.exists(path)]
    return f"{os.path.relpath(missing[0], job.directory)} is missing" if missing else _outdated(job)


def _outdated(job: Job) -> str | None:
    """Which input is newer than which output, in words; None if none is.

    Directories do not count: they change with their content.
    """
    inputs = [(time, path) for path in job.inputs if (time := _changed(path)) is not None]
    outputs = [(time, path) for path in job.outputs if (time := _changed(path)) is not None and path not in job.inputs]
    if not inputs or not outputs:
        return None
    (newest, source), (oldest, output) = max(inputs), min(outputs)
    if newest <= oldest:
        return None
    return f"{os.path.relpath(source, job.directory)} is newer than {os.path.relpath(output, job.directory)}"


def _changed(path: str) -> int | None:
    """When a regular file was last changed, in nanoseconds; None if the path is not that of a regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns if stat.S_ISREG(status.st_mode) else None


def _makers_needed(
    jobs: Sequence[Job], reasons: Mapping[int, str], data: DataDirectory, user_data: Mapping[str, UserData]
) -> dict[int, str]:
    """Jobs that are done but must make user data again: it is missing, and either kept or read by a job that runs."""
    read = {name for job in jobs if job.number in reasons for name in job.input_data}
    makers = {}
    for job in jobs:
        for name in job.output_data if job.number not in reasons else ():
            is_needed = name in read or not user_data[name].is_ephemeral
            if is_needed and not data.has(name) and user_data[name].value is None:
                makers[job.number] = f"user data {name} is missing"
    return makers


def renumber(plan: Plan, numbers_before: Mapping[str, int]) -> Plan:
    """The plan with the numbers that its jobs had before; new jobs get new numbers."""
    following = max(numbers_before.values(), default=0) + 1
    numbers: dict[int, int] = {}
    for job in plan.jobs:
        if job.name in numbers_before:
            numbers[job.number] = numbers_before[job.name]
        else:
            numbers[job.number] = following
            following += 1
    moved: dict[int, tuple[int, ...]] = {}  # the jobs of a sweep share one `blocked_by` tuple
    jobs = []
    for job in plan.jobs:
        same = id(job.blocked_by)
        if same not in moved:
            moved[same] = tuple(sorted(numbers[number] for number in job.blocked_by))
        jobs.append(job._replace(number=numbers[job.number], blocked_by=moved[same]))
    return plan._replace(jobs=sorted(jobs, key=lambda job: job.number))
