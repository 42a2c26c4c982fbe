"""The stored runs of a workflow: plan, attempts and status."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jobmeter.byte_text import to_path
from jobmeter.model import Requirement
from jobmeter.workflow.attempts import Attempt, of_row
from jobmeter.workflow.directory import RunDirectory, StoredPlan, find_run
from jobmeter.workflow.plan import Job, Monitor, Plan, Retry
from jobmeter.workflow.settled import settled_jobs
from jobmeter.workflow.status import WorkflowStatus, status_of


class StoredRun(NamedTuple):
    directory: RunDirectory
    plan: StoredPlan
    attempts: list[Attempt]  # sorted by job and attempt

    def status(self) -> WorkflowStatus:
        settled = list(settled_jobs(self.directory.settled))
        return status_of(self.plan, self.attempts, being_run=self.directory.is_being_run(), settled=settled)


def stored_run(store: str, workflow: str | None, run_id: int | None, warn: Callable[[str], None]) -> StoredRun:
    """A run, see `find_run`, with its plan and all attempts at its jobs; `warn` gets a line for each bad journal."""
    directory = find_run(store, workflow, run_id)
    return StoredRun(directory, directory.plan(), attempts_of(store, directory, warn))


def attempts_of(store: str, directory: RunDirectory, warn: Callable[[str], None]) -> list[Attempt]:
    from jobmeter.store import Selection, open_store

    of_this_run = Selection(workflow=directory.workflow, workflow_run=directory.run_id)
    attempts = [of_row(row) for row in open_store(store, warn).runs(of_this_run)]
    return sorted(attempts, key=lambda attempt: (attempt.number, attempt.attempt, attempt.started))


def restored_plan(stored: StoredRun) -> Plan:
    """The plan of a run, as far as it was stored."""
    jobs = []
    for job in stored.plan["jobs"]:
        requirement = Requirement(**job["requirement"])
        jobs.append(
            Job(
                number=job["job_id"],
                name=job["name"],
                step=job["step"],
                command=[],
                script=job["command"],
                directory="",
                environment={},
                requirement=requirement,
                gpus=requirement.gpus or 0,
                requirement_name=None,
                blocked_by=tuple(job["blocked_by"]),
                inputs=tuple(map(to_path, job.get("inputs", ()))),
                outputs=tuple(map(to_path, job.get("outputs", ()))),
                retry=Retry(),
                priority=0,
                labels={},
                container=None,
                runs_after_failure=job.get("runs_after_failure", False),
                input_data=tuple(job.get("input_data", ())),
                output_data=tuple(job.get("output_data", ())),
                is_action=job.get("is_action", False),
            )
        )
    plan = stored.plan
    return Plan(plan["name"], plan["description"], plan["user"], to_path(plan["spec"]), Monitor(), False, jobs)
