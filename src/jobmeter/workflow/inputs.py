"""Files that jobs need and that no job makes."""

from __future__ import annotations

import os

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import Plan


def check_inputs(plan: Plan) -> None:
    """UsageError when a job needs a file that is not there and that no job makes."""
    made = {path for job in plan.jobs for path in job.outputs}
    for job in plan.jobs:
        for path in job.inputs:
            if path not in made and not os.path.exists(path):
                raise UsageError(
                    f"{plan.path}: job {job.name!r} needs {path}, which is not there, and no job has it as an output"
                )
