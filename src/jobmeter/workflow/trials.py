"""A plan with more or fewer jobs in its sweeps than the spec has. Pure: jobs in, jobs out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobmeter.workflow.plan import Job


def with_trials(jobs: Sequence[Job], trials: int) -> list[Job]:
    """The jobs, with `trials` jobs in each sweep: the last ones are left out, or its jobs are copied in turn.

    A copy waits for the copies of the same turn; a job outside the sweeps waits for all copies of a job it waits for.
    """
    sweeps = _sweeps(jobs)
    single = {job.number for job in jobs} - {job.number for members in sweeps for job in members}
    kept = single | {job.number for members in sweeps for job in members[:trials]}
    copies = _copies(sweeps, trials, max((job.number for job in jobs), default=0))
    again: dict[int, list[int]] = {}
    for (number, _), copy in copies.items():
        again.setdefault(number, []).append(copy)
    planned = []
    for job in jobs:
        if job.number in kept:
            befores = [number for number in job.blocked_by if number in kept]
            if job.number in single:
                befores += [copy for number in befores for copy in again.get(number, ())]
            planned.append(job._replace(blocked_by=tuple(sorted(befores))))
    by_number = {job.number: job for job in jobs}
    for (number, turn), copy in copies.items():
        job = by_number[number]
        befores = [copies.get((before, turn), before) for before in job.blocked_by if before in kept]
        planned.append(job._replace(number=copy, blocked_by=tuple(sorted(set(befores)))))
    return planned


def _sweeps(jobs: Iterable[Job]) -> list[list[Job]]:
    """The jobs of each step that has several."""
    steps: dict[str, list[Job]] = {}
    for job in jobs:
        steps.setdefault(job.step, []).append(job)
    return [members for members in steps.values() if len(members) > 1]


def _copies(sweeps: Iterable[Sequence[Job]], trials: int, last_number: int) -> dict[tuple[int, int], int]:
    """(Job, turn) → the number of the copy of this job that is made in this turn."""
    copies = {}
    for members in sweeps:
        for place in range(len(members), trials):
            last_number += 1
            turn, member = divmod(place, len(members))
            copies[members[member].number, turn] = last_number
    return copies
