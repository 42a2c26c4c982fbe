"""The scripts of failure handlers that are running, each for an attempt that failed."""

from __future__ import annotations

import time
from typing import NamedTuple

from jobmeter.engines.contract import Task
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.failure_handling import recovery_job
from jobmeter.workflow.listener import Running
from jobmeter.workflow.task_maker import TaskMaker


class Recovery(NamedTuple):
    """An attempt that failed, while the script of its failure handler runs."""

    running: Running
    attempt: Attempt


class RecoveryScripts:
    """The running scripts. Each runs as a job, with a number that no other job has."""

    def __init__(self, task_maker: TaskMaker, last_number: int) -> None:
        """`last_number` is the highest number that a job of the workflow has, or had."""
        self._task_maker = task_maker
        self._last_number = last_number
        self._recoveries: dict[int, Recovery] = {}  # by the number of the script

    def begin(self, script: str, failed: Running, attempt: Attempt) -> tuple[Running, Task]:
        """Register a script; return it as a running job, and its task, which the caller starts."""
        number = self._last_number + failed.job.number
        job = recovery_job(failed.job, script, number)
        task = self._task_maker.recovery_task(job, failed.job, failed.attempt, attempt.outcome.shell_code or 0)
        self._recoveries[number] = Recovery(failed, attempt)
        return Running(job, failed.attempt, time.monotonic(), job.requirement), task

    def end(self, number: int) -> Recovery | None:
        """Remove the script of this number and return what it ran for; None if the number is not that of a script."""
        return self._recoveries.pop(number, None)

    def of_job(self, number: int) -> list[int]:
        """The numbers of the scripts that run for a job."""
        return [script for script, recovery in self._recoveries.items() if recovery.running.job.number == number]
