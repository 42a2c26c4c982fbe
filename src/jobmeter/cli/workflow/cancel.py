"""`jobmeter workflow cancel`: end a workflow that is being run, or some of its jobs."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import time
from collections.abc import Sequence

from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.errors import StoreError, UsageError
from jobmeter.model import Status
from jobmeter.settings import resolve
from jobmeter.workflow.control import CancelJob, send_requests
from jobmeter.workflow.directory import RunDirectory, Runner, find_run
from jobmeter.workflow.find_job import JobName, find_jobs
from jobmeter.workflow.settled import SettledJob, settled_jobs

_LOOK = 0.05


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    directory = find_run(resolve("store", options.store), options.workflow, options.run_id)
    jobs = _named_jobs(directory, options.job)
    if not directory.is_being_run():
        raise UsageError(f"workflow {directory.workflow} (run {directory.run_id}) is not being run")
    runner = directory.runner()
    if runner is None:
        raise StoreError(f"{directory.path}/runner.json: does not say which process runs the workflow. Try again.")
    if runner.host != os.uname().nodename:
        raise UsageError(f"workflow {directory.workflow} is being run on {runner.host}: cancel it there")
    if jobs:
        return _cancel_jobs(directory, jobs)
    _cancel_all(directory, runner)
    return 0


def _named_jobs(directory: RunDirectory, texts: Sequence[str]) -> list[JobName]:
    plan = directory.plan()
    return list(dict.fromkeys(job for text in texts for job in find_jobs(plan, text)))


def _cancel_all(directory: RunDirectory, runner: Runner) -> None:
    try:
        if runner.lives():
            os.kill(runner.pid, signal.SIGTERM)
    except PermissionError:
        raise UsageError(f"process {runner.pid}, which runs {directory.workflow}, belongs to another user") from None
    except ProcessLookupError:
        pass  # it has just ended
    while directory.is_being_run():
        time.sleep(_LOOK)  # it is not our child: there is no way to wait for it
    warn(f"workflow {directory.workflow} (run {directory.run_id}) was cancelled; `workflow resume` runs what is left")


def _cancel_jobs(directory: RunDirectory, jobs: Sequence[JobName]) -> int:
    """Cancel these jobs. Returns 0 if all were cancelled, 1 if one had ended before."""
    request = secrets.token_hex(8)
    send_requests(directory.control, [CancelJob(job.number, request) for job in jobs])
    answers = _await_answers(directory, {job.number for job in jobs}, request)
    in_time = True
    for job in jobs:
        answer = answers.get(job.number)
        if answer is not None and answer.status == Status.CANCELLED:
            warn(f"job {job.name} was cancelled; `workflow resume` runs it, and what needs it")
            continue
        in_time = False
        status = "the workflow ended meanwhile" if answer is None else f"it is {answer.status} already"
        warn(f"job {job.name} was not cancelled: {status}")
    return 0 if in_time else 1


def _await_answers(directory: RunDirectory, numbers: set[int], request: str) -> dict[int, SettledJob]:
    """Wait until all jobs are settled, or the workflow is not being run any more. Returns job → how it was settled."""
    while True:
        is_being_run = directory.is_being_run()
        answers = {each.number: each for each in settled_jobs(directory.settled) if each.request == request}
        if answers.keys() >= numbers or not is_being_run:
            return answers
        time.sleep(_LOOK)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow cancel",
        "End a workflow that is being run, with its jobs; what they used stays recorded, and it can be resumed. "
        "With --job, end that job alone: what needs it is blocked, and the rest goes on.",
    )
    add_workflow_argument(parser)
    job = "a job by number, name, sweep or glob, running or waiting; may be given again"
    parser.add_argument("--job", metavar="JOB", action="append", default=[], help=job)
    add_store_option(parser)
    return parser.parse_args(arguments)
