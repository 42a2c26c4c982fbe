"""What jobs of several attempts ask for today, as the plans of their runs have it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jobmeter.errors import StoreError
from jobmeter.model import Requirement

if TYPE_CHECKING:
    from jobmeter.analyse.check import Key, Row


def asked_today(store: str, rows: Iterable[Row]) -> dict[Key, Requirement]:
    """By job; of a run whose plan is not kept, nothing."""
    from jobmeter.analyse.check import job_of
    from jobmeter.workflow.directory import RunDirectory

    again = [job for job in map(job_of, rows) if job.attempt > 1]
    keys = {job.key for job in again}
    requests: dict[Key, Requirement] = {}
    for workflow, run in {(job.workflow, job.workflow_run) for job in again}:
        if workflow is None or run is None:
            continue
        # Runs that were imported have none.
        with contextlib.suppress(StoreError):
            for job in RunDirectory(store, workflow, run).plan()["jobs"]:
                if (key := (workflow, run, job["job_id"])) in keys:
                    requests[key] = Requirement(**job["requirement"])
    return requests
