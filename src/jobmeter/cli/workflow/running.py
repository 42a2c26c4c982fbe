"""Shared by `workflow run` and `workflow resume`: show the progress, stop on a signal, report how a workflow ended."""

from __future__ import annotations

import os
import sys
import time

from jobmeter.cli.workflow.run_messages import RunMessages
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.subreaper import become_subreaper
from jobmeter.launch.leftover_jobs import Adopted
from jobmeter.launch.signals import ENDING, Forwarder
from jobmeter.workflow.job_environment import ATTEMPT_VARIABLE
from jobmeter.workflow.result import Result
from jobmeter.workflow.run import WorkflowRun
from jobmeter.workflow.service import Prepared, execute

_SAME_CALL = 1.0
"""Seconds within which another signal is not a second one: `timeout` signals both its child and its process group."""


def run_to_the_end(prepared: Prepared, *, quiet: bool) -> int:
    """Run a workflow that was claimed, and return the exit code."""
    messages = RunMessages(prepared, quiet=quiet)
    stopping = _Stopping()

    def run(run: WorkflowRun) -> Result:
        # A job whose shepherd is killed becomes our child, and we learn how it ended.
        become_subreaper()
        adopted = Adopted(THIS_MACHINE, ATTEMPT_VARIABLE)
        stopping.watch(run)
        try:
            return _show(run, messages, len(prepared.done), quiet=quiet)
        finally:
            if count := adopted.end():
                messages.warn(f"ended {count} process{'es' * (count > 1)} that jobs had left running")
            stopping.over = True

    result = execute(prepared, listener=messages, warn=messages.warn, run=run)
    if result.stopped:
        return 128 + stopping.first
    return 0 if result.succeeded else 1


class _Stopping:
    """Stops the workflow on a signal. On a second signal, its jobs are ended without SIGTERM before."""

    def __init__(self) -> None:
        self.first = 0  # the first signal that came; 0 if none
        self.over = False  # nothing runs any more: a signal may end us as it would any program
        self._last = 0.0

    def watch(self, run: WorkflowRun) -> None:
        self._run = run
        Forwarder(self._receive, ENDING)

    def _receive(self, number: int, from_terminal: bool) -> None:
        if self.over:
            os._exit(128 + number)
        now = time.monotonic()
        again = self.first != 0 and (from_terminal or now - self._last > _SAME_CALL)
        self._last = now
        self.first = self.first or number
        self._run.stop(at_once=again)


def _show(run: WorkflowRun, messages: RunMessages, done: int, *, quiet: bool) -> Result:
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return run.run()
    from jobmeter.cli.workflow.display import Display

    with Display(run, done) as display:
        messages.console = display.console
        return run.run()
