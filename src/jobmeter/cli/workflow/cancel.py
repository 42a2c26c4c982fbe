"""`jobmeter workflow cancel`: end a workflow that is being run."""

from __future__ import annotations

import argparse
import os
import signal
import time

from jobmeter.cli.shared.filters import add_store_option
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.cli.workflow.options import add_workflow_argument
from jobmeter.errors import StoreError, UsageError
from jobmeter.settings import resolve
from jobmeter.workflow.directory import RunDirectory, find_run

_LOOK = 0.05


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    directory = find_run(resolve("store", options.store), options.workflow, options.run_id)
    if not directory.is_being_run():
        raise UsageError(f"workflow {directory.workflow} (run {directory.run_id}) is not being run")
    runner = directory.runner()
    if runner is None:
        raise StoreError(f"{directory.path}/runner.json: does not tell which process runs the workflow. Try again.")
    if runner.host != os.uname().nodename:
        raise UsageError(f"workflow {directory.workflow} is being run on {runner.host}: cancel it there")
    try:
        if runner.lives():
            os.kill(runner.pid, signal.SIGTERM)
    except PermissionError:
        raise UsageError(f"process {runner.pid}, which runs {directory.workflow}, belongs to another user") from None
    except ProcessLookupError:
        pass  # it came to its end just now
    _wait(directory)
    warn(f"workflow {directory.workflow} (run {directory.run_id}) was cancelled; `workflow resume` runs what is left")
    return 0


def _wait(directory: RunDirectory) -> None:
    """Return when nobody runs it any more. It is not our child, so we look."""
    while directory.is_being_run():
        time.sleep(_LOOK)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow cancel",
        "End a workflow that is being run, with its jobs; what they used is kept, and it can be resumed.",
    )
    add_workflow_argument(parser)
    add_store_option(parser)
    return parser.parse_args(arguments)
