"""Files and directories that jobs need and that no job makes."""

from __future__ import annotations

import os

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import Plan


def check_inputs(plan: Plan) -> None:
    """UsageError when a job needs a file, or a directory to run in, that is not there and that no job makes."""
    made = {path for job in plan.jobs for path in job.outputs}
    directories = {os.path.dirname(path) for path in made} | made
    for job in plan.jobs:
        if job.directory not in directories and not os.path.isdir(job.directory):
            raise UsageError(f"{plan.path}: job {job.name!r} is to run in {job.directory}, which is no directory")
        for path in job.inputs:
            if path not in made and not os.path.exists(path):
                raise UsageError(
                    f"{plan.path}: job {job.name!r} needs {path}, which is not there, and no job has it as an output"
                )
