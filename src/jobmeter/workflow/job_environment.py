"""The environment variables that jobs of a workflow, and their recovery scripts, get."""

from __future__ import annotations

from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.plan import Job

ATTEMPT_VARIABLE = "JOBMETER_ATTEMPT"
"""The variable that has the number of the attempt."""
DATA_DIRECTORY_VARIABLE = "JOBMETER_DATA_DIR"
"""The variable that has the directory of the run's user data: `jobmeter data` reads it in a job."""


def job_environment(directory: RunDirectory, job: Job, attempt: int) -> dict[str, str]:
    """The variables of an attempt at a job, under our names and under those that specs written for Torc use."""
    common = {
        "JOB_NAME": job.name,
        "JOB_ID": str(job.number),
        "WORKFLOW_ID": directory.workflow,
        "OUTPUT_DIR": directory.logs,
    }
    variables = {f"{prefix}_{name}": value for prefix in ("JOBMETER", "TORC") for name, value in common.items()}
    variables[ATTEMPT_VARIABLE] = variables["TORC_ATTEMPT_ID"] = str(attempt)
    variables["JOBMETER_RUN_ID"] = str(directory.run_id)
    if job.input_data or job.output_data:
        variables[DATA_DIRECTORY_VARIABLE] = directory.data.path
    return variables


def recovery_environment(directory: RunDirectory, job: Job, attempt: int, exit_code: int) -> dict[str, str]:
    """The variables of the job that failed, and its exit code."""
    code = str(exit_code)
    return {**job_environment(directory, job, attempt), "JOBMETER_RETURN_CODE": code, "TORC_RETURN_CODE": code}
