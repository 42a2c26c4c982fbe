"""The stored runs of a workflow: plan, attempts and status."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jobmeter.workflow.attempts import Attempt, of_row
from jobmeter.workflow.directory import RunDirectory, StoredPlan, find_run
from jobmeter.workflow.status import WorkflowStatus, status_of


class StoredRun(NamedTuple):
    directory: RunDirectory
    plan: StoredPlan
    attempts: list[Attempt]  # by job and attempt

    def status(self) -> WorkflowStatus:
        return status_of(self.plan, self.attempts, being_run=self.directory.is_being_run())


def stored_run(store: str, workflow: str | None, run_id: int | None, warn: Callable[[str], None]) -> StoredRun:
    """The run that is meant, with its plan and all attempts at its jobs; `warn` gets a line for each bad journal."""
    directory = find_run(store, workflow, run_id)
    return StoredRun(directory, directory.plan(), attempts_of(store, directory, warn))


def attempts_of(store: str, directory: RunDirectory, warn: Callable[[str], None]) -> list[Attempt]:
    from jobmeter.store import Selection, open_store

    of_this_run = Selection(workflow=directory.workflow, workflow_run=directory.run_id)
    attempts = [of_row(row) for row in open_store(store, warn).runs(of_this_run)]
    return sorted(attempts, key=lambda attempt: (attempt.number, attempt.attempt, attempt.started))
