"""Which jobs of a workflow are settled, so that nothing more comes of them: `settled.jsonl` beside the plan.

The journal has how every attempt ended. It does not have whether another one follows, nor that somebody requested to
cancel just this job. A line stands here for each job that did not complete, and for each request to cancel one. The
file is of the runner that is, or was last: one that resumes the workflow runs all of these again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from jobmeter.model import Status
from jobmeter.workflow.line_log import LineLog, read_lines


class SettledJob(NamedTuple):
    number: int
    attempt: int  # its last; 0: it had none
    status: str  # of that attempt, or `blocked`
    request: str | None = None  # that it be cancelled, which is hereby answered

    @property
    def is_cancelled_alone(self) -> bool:
        """Whether this job was cancelled, and not the whole workflow."""
        return self.request is not None and self.status == Status.CANCELLED


class SettledLog(LineLog):
    """Append only; any thread may."""

    def __init__(self, path: str) -> None:
        """Empty at first. StoreError when it cannot be written."""
        super().__init__(path, os.O_TRUNC)

    def add(self, job: SettledJob) -> None:
        """OSError when it cannot be written."""
        entry = {"job": job.number, "attempt": job.attempt, "status": job.status}
        self.append(entry if job.request is None else {**entry, "request": job.request})


def settled_jobs(path: str) -> Iterator[SettledJob]:
    """What a `SettledLog` has."""
    for entry in read_lines(path):
        try:
            yield SettledJob(entry["job"], entry["attempt"], entry["status"], entry.get("request"))
        except KeyError:
            continue  # damaged
