"""Checks that the files and directories exist that jobs need and that no job makes."""

from __future__ import annotations

import os

from jobmeter.errors import UsageError
from jobmeter.workflow.plan import Plan


def check_inputs(plan: Plan) -> None:
    """Raise UsageError if jobs need files, or directories to run in, that do not exist and that no job makes."""
    if missing := missing_inputs(plan):
        raise UsageError(*(f"{plan.path}: {line}" for line in missing))


def missing_inputs(plan: Plan) -> list[str]:
    """A line for each file or directory that is missing, with the first job that needs it."""
    missing: dict[str, str] = {}
    made = {path for job in plan.jobs for path in job.outputs}
    directories = {os.path.dirname(path) for path in made} | made
    for job in plan.jobs:
        if job.directory not in directories and not os.path.isdir(job.directory):
            missing.setdefault(job.directory, f"job {job.name!r} is to run in {job.directory}, which is no directory")
        for path in job.inputs:
            if path not in made and not os.path.exists(path):
                missing.setdefault(
                    path, f"job {job.name!r} needs {path}, which is not there, and no job has it as an output"
                )
    return list(missing.values())
