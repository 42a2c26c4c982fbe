"""What a spec's failure handlers say of a job that failed: whether a script repairs it, and it is tried again."""

from __future__ import annotations

import os
import shlex

from jobmeter.model import Outcome, Requirement, Status
from jobmeter.workflow.plan import FailureRule, Job, Retry
from jobmeter.workflow.spec.plan.command import SHELL, Programs, shell_command

_BY_THEMSELVES = frozenset((Status.COMPLETED, Status.CANCELLED, Status.LOST))


def matching_rule(job: Job, outcome: Outcome, attempt: int) -> FailureRule | None:
    """The first rule for the exit code; None when there is none, or its attempts are used up."""
    code = outcome.shell_code
    if outcome.status in _BY_THEMSELVES or not code:
        return None
    for rule in job.failure_rules:
        if rule.matches_all or code in rule.exit_codes:
            return rule if attempt <= rule.retries else None
    return None


def recovery_job(job: Job, script: str, number: int) -> Job:
    """The script as a job of its own: it runs where the job does, and requests nothing."""
    return job._replace(
        number=number,
        name=f"{job.name}.recovery",
        step=f"{job.step}.recovery",
        command=_command(script, job),
        script=script,
        requirement=Requirement(),
        gpus=0,
        blocked_by=(),
        inputs=(),
        outputs=(),
        output_data=(),
        container=None,
        retry=Retry(),
        failure_rules=(),
    )


def _command(script: str, job: Job) -> list[str]:
    """A file of the job's directory is found there, and executed by a shell if it is not executable itself."""
    first, *rest = shlex.split(script, posix=True) if "'" not in script and '"' not in script else [""]
    path = os.path.join(job.directory, os.path.expanduser(first))
    if first and os.path.isfile(path):
        return [path, *rest] if os.access(path, os.X_OK) else [_shell_of(path), path, *rest]
    return shell_command(script, True, job.directory, job.environment, Programs(os.environ))


def _shell_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            line = file.readline()
    except OSError:
        return SHELL
    words = line[2:].split() if line.startswith("#!") else []
    return words[0] if len(words) == 1 else SHELL
