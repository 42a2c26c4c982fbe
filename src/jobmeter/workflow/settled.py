"""Which jobs of a workflow are settled, so that no attempt follows: `settled.jsonl` next to the plan.

The journal has how every attempt ended, but not whether another one follows, nor whether a user requested to cancel
only this job. This file has a line for each job that ended without completing, and for each request to cancel one. It
belongs to the current or last runner: a runner that resumes the workflow empties it, and runs these jobs again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from jobmeter.model import Status
from jobmeter.workflow.line_log import LineLog, read_lines


class SettledJob(NamedTuple):
    number: int
    attempt: int  # the last one of the job; 0: it had none
    status: str  # of that attempt, or `blocked`
    request: str | None = None  # the request to cancel the job, which this line answers

    @property
    def is_cancelled_alone(self) -> bool:
        """Whether this job was cancelled, and not the whole workflow."""
        return self.request is not None and self.status == Status.CANCELLED


class SettledLog(LineLog):
    """The file of settled jobs, for its runner. Any thread may add to it."""

    def __init__(self, path: str) -> None:
        """Create the file, or empty it. Raises StoreError if it cannot be opened."""
        super().__init__(path, os.O_TRUNC)

    def add(self, job: SettledJob) -> None:
        """Append a job. Raises OSError if it cannot be written."""
        entry = {"job": job.number, "attempt": job.attempt, "status": job.status}
        self.append(entry if job.request is None else {**entry, "request": job.request})


def settled_jobs(path: str) -> Iterator[SettledJob]:
    """The jobs in the file of a `SettledLog`; damaged lines are left out."""
    for entry in read_lines(path):
        try:
            yield SettledJob(entry["job"], entry["attempt"], entry["status"], entry.get("request"))
        except KeyError:
            continue  # damaged
