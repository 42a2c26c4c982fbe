"""Applies a spec's failure handlers to a failed job: whether a recovery script runs, and the job is tried again."""

from __future__ import annotations

import os
import shlex

from jobmeter.model import Outcome, Requirement, Status
from jobmeter.workflow.plan import FailureRule, Job, Retry
from jobmeter.workflow.spec.plan.command import SHELL, Programs, interpreter, shell_command

_BY_THEMSELVES = frozenset((Status.COMPLETED, Status.CANCELLED, Status.LOST))


def matching_rule(job: Job, outcome: Outcome, attempt: int) -> FailureRule | None:
    """The first rule that matches the exit code; None if there is none, or its retries are used up."""
    code = outcome.shell_code
    if outcome.status in _BY_THEMSELVES or not code:
        return None
    for rule in job.failure_rules:
        if rule.matches_all or code in rule.exit_codes:
            return rule if attempt <= rule.retries else None
    return None


def recovery_job(job: Job, script: str, number: int) -> Job:
    """The recovery script as a job: it runs in the directory of the failed job, and has no requirement."""
    return job._replace(
        number=number,
        name=f"{job.name}.recovery",
        step=f"{job.step}.recovery",
        command=_command(script, job),
        script=script,
        requirement=Requirement(),
        gpus=0,
        custom={},
        blocked_by=(),
        inputs=(),
        outputs=(),
        output_data=(),
        container=None,
        retry=Retry(),
        failure_rules=(),
    )


def _command(script: str, job: Job) -> list[str]:
    """The words to execute. A file is looked up in the job's directory, and need not be executable.

    Whatever the script contains, there is a command: what cannot be split into words is left to the shell.
    """
    first, *rest = _words(script) or [""]
    path = os.path.join(job.directory, os.path.expanduser(first))
    if first and os.path.isfile(path):
        return [path, *rest] if os.access(path, os.X_OK) else [*_interpreter_of(path), path, *rest]
    return shell_command(script, True, job.directory, job.environment, Programs(os.environ))


def _words(script: str) -> list[str]:
    """The words of a script that has no quotes; none if it cannot be split into words."""
    if "'" in script or '"' in script:
        return []
    try:
        return shlex.split(script)
    except ValueError:  # it ends in a backslash
        return []


def _interpreter_of(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return interpreter(file.readline()) or [SHELL]
    except OSError:
        return [SHELL]
