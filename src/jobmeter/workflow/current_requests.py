"""What jobs with several attempts request today, according to the stored plans of their runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jobmeter.errors import StoreError
from jobmeter.model import Requirement

if TYPE_CHECKING:
    from jobmeter.analyse.check import Key
    from jobmeter.analyse.stored_run import StoredRun


def current_requests(store: str, rows: Iterable[StoredRun]) -> dict[Key, Requirement]:
    """The requests of the jobs that have several attempts; jobs of a run whose plan is not stored are absent."""
    from jobmeter.analyse.check import job_of

    again = [job for row in rows if row.get("workflow_job") and (job := job_of(row)).attempt > 1]
    if not again:
        return {}
    from jobmeter.workflow.directory import RunDirectory

    keys = {job.key for job in again}
    requests: dict[Key, Requirement] = {}
    for workflow, run in {(job.workflow, job.workflow_run) for job in again}:
        if workflow is None or run is None:
            continue
        # Imported runs have no plan.
        with contextlib.suppress(StoreError):
            for job in RunDirectory(store, workflow, run).plan()["jobs"]:
                if (key := (workflow, run, job["job_id"])) in keys:
                    requests[key] = Requirement(**job["requirement"])
    return requests
