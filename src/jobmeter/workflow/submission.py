"""Submits a single job to an engine, to run in the background: a workflow of one job, run by a separate process.

The process is a `workflow run` without a terminal. So every command that shows, follows, cancels or resumes a workflow
does that for a submitted job too, on every engine.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jobmeter.byte_text import json_text, to_text
from jobmeter.errors import LaunchError, StoreError
from jobmeter.model import Requirement, workflow_id
from jobmeter.store_access import create, make_store_directory
from jobmeter.workflow.directory import RunDirectory, run_ids

_LOOK = 0.02


class Submission(NamedTuple):
    """A job to submit."""

    command: Sequence[str]
    name: str
    directory: str
    requirement: Requirement = Requirement()
    enforce: bool = False
    retries: int = 0
    labels: Mapping[str, str] = {}
    interval: float = 1.0

    def as_spec(self, identity: str) -> dict[str, Any]:
        """The spec of a workflow of this name that runs the job."""
        request = self.requirement
        amounts = {
            "cpus": request.cpus,
            "memory": None if request.memory_bytes is None else f"{request.memory_bytes}b",
            "runtime": None if request.runtime_seconds is None else f"{request.runtime_seconds}s",
            "gpus": request.gpus,
        }
        return {
            "name": identity,
            "enforce": self.enforce,
            "resource_monitor": {"granularity": "time_series", "sample_interval_seconds": self.interval},
            "jobs": [
                {
                    "name": self.name,
                    "command": [to_text(word) for word in self.command],
                    "shell": False,
                    "cwd": to_text(self.directory),
                    "labels": dict(self.labels),
                    "retry": self.retries,
                    "resource_requirements": {name: value for name, value in amounts.items() if value is not None},
                }
            ],
        }


class Submitted(NamedTuple):
    """A job that was submitted. Its id is that of its workflow."""

    id: str
    store: str
    runner: subprocess.Popen[bytes]

    def wait(self) -> int:
        """Wait until the job has ended, and return its exit code as a shell would show it."""
        from jobmeter.workflow.history import attempts_of

        self.runner.wait()
        attempts = attempts_of(self.store, RunDirectory(self.store, self.id, 1), lambda _: None)
        return attempts[-1].outcome.shell_code if attempts else 125


def submit(store: str, submission: Submission, engine: str, options: Mapping[str, str]) -> Submitted:
    """Start a process that runs the job on an engine, and return once its run has begun.

    Raises LaunchError, with the reason, if the process cannot be started or ends at once.
    """
    identity = workflow_id(f"{submission.name[:60]}-{secrets.token_hex(3)}")
    try:
        make_store_directory(store, "journal")  # the whole store gets the permissions of this directory
        access = make_store_directory(store, "workflows", identity)
        folder = f"{store}/workflows/{identity}"
        spec, log = f"{folder}/submitted.json", f"{folder}/submitted.log"
        with open(create(spec, access, os.O_WRONLY), "w", encoding="utf-8") as file:
            file.write(json_text(submission.as_spec(identity)))
        output = create(log, access, os.O_WRONLY)
    except OSError as error:
        raise StoreError(f"{error.filename}: {error.strerror}. Name another place with --store.") from None
    command = [sys.executable, "-m", "jobmeter", "workflow", "run", spec, "--quiet", "--store", store]
    command += ["--engine", engine, *(f"--{name}={value}" for name, value in options.items())]
    try:
        # In a new session: it survives the end of the terminal.
        runner = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    except OSError as error:
        raise LaunchError(f"no process can be started here: {error.strerror}") from None
    finally:
        os.close(output)
    while not run_ids(store, identity):
        if runner.poll() is not None and not run_ids(store, identity):
            raise LaunchError(_last_line(log))
        time.sleep(_LOOK)
    return Submitted(identity, store, runner)


def _last_line(log: str) -> str:
    """Why the runner ended: the last line that it wrote."""
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as error:
        return f"{log}: {error.strerror}"
    return lines[-1].removeprefix("jobmeter: ") if lines else "the process that should run the job ended at once"
