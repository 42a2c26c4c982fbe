"""Makes the tasks that engines run: an attempt at a job of a workflow, or a recovery script."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.engines import DEFAULT
from jobmeter.engines.contract import Capacity, Measure, Task
from jobmeter.model import Requirement
from jobmeter.session.metrics import FILE
from jobmeter.workflow.auto_size import input_labels
from jobmeter.workflow.containers import container_command, container_options
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.job_environment import job_environment, recovery_environment
from jobmeter.workflow.plan import Job, Plan
from jobmeter.workflow.resume import fingerprint

if TYPE_CHECKING:
    from jobmeter.record.types import WorkflowPart


class RunOptions(NamedTuple):
    store: str
    capacity: Capacity
    enforce: bool = False
    monitoring: bool = True
    engine: str = DEFAULT
    engine_options: Mapping[str, str] = {}  # those that may be stored
    redact: list[str] | None = None  # what to hide in command lines; None: the default patterns
    label_inputs: bool = False  # label each run with the size of its inputs, from which `size` learns


class TaskMaker:
    """Makes the tasks of one run, and holds what they have in common."""

    def __init__(self, plan: Plan, directory: RunDirectory, options: RunOptions) -> None:
        self._plan = plan
        self._directory = directory
        self._options = options
        directories = Counter(job.directory for job in plan.jobs)
        self._own_directories = {path for path, jobs in directories.items() if jobs == 1}

    def task(self, job: Job, attempt: int, requirement: Requirement) -> Task:
        """The task for an attempt at a job."""
        added = job_environment(self._directory, job, attempt)
        if job.input_data:
            added |= self._directory.data.variables(job)
        return self._task(job, attempt, requirement, added)

    def recovery_task(self, script: Job, job: Job, attempt: int, exit_code: int) -> Task:
        """The task for the script that runs after an attempt at a job failed with `exit_code`."""
        added = recovery_environment(self._directory, job, attempt, exit_code)
        return self._task(script, attempt, Requirement(), {**added, **self._directory.data.variables(job)})

    def _task(self, job: Job, attempt: int, requirement: Requirement, added: dict[str, str]) -> Task:
        stdout, stderr = self._directory.log_paths(job.name, attempt)
        in_container = job.container is not None
        workflow: WorkflowPart = {
            "id": self._directory.workflow,
            "name": self._plan.name,
            "run_id": self._directory.run_id,
            "job_id": job.number,
            "step": job.step,
            "attempt": attempt,
            "fingerprint": fingerprint(job),
        }
        data = self._directory.data
        command = container_command(job) if in_container else job.command
        return Task(
            number=job.number,
            attempt=attempt,
            name=job.name,
            command=[data.resolved(word) for word in command] if job.input_data or job.output_data else command,
            directory=job.directory,
            environment={**job.environment, **added},
            stdout=stdout,
            stderr=stderr,
            workflow=workflow,
            requirement=requirement,
            enforce=self._options.enforce,
            heeds_sigterm=job.heeds_sigterm,
            outputs=(*job.outputs, *map(data.file, job.output_data)) if job.output_data else job.outputs,
            # A file that several jobs could have written cannot be attributed to any of them.
            metrics=os.path.join(job.directory, FILE) if job.directory in self._own_directories else None,
            labels={**job.labels, **input_labels(job)} if self._options.label_inputs else job.labels,
            measure=self._measure(),
            container=container_options(job, added) if in_container else None,
            custom=dict(job.custom),
        )

    def measurements(self) -> list[str] | None:
        return None if self._options.monitoring and self._plan.monitor.enabled else ["none"]

    def _measure(self) -> Measure:
        monitor = self._plan.monitor
        return Measure(
            interval=monitor.interval,
            window=monitor.interval,
            measurements=self.measurements(),
            keep_windows=monitor.granularity == "time_series" or monitor.generate_plots,
            redact=self._options.redact,
        )
