"""What `workflow run` and `workflow resume` share: run to the end, show how it goes, tell what became of it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from jobmeter.cli.workflow.run_messages import Teller, tell_end
from jobmeter.kernel.subreaper import become_subreaper
from jobmeter.launch.signals import ENDING, Forwarder
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.capacity import Capacity
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.plan import Plan
from jobmeter.workflow.run import Result, RunOptions, WorkflowRun

_SAME_CALL = 1.0
"""Seconds within which another signal is not a second one: `timeout` sends to its child and to its group."""


def run_to_the_end(
    plan: Plan,
    directory: RunDirectory,
    capacity: Capacity,
    options: argparse.Namespace,
    *,
    before: Sequence[Attempt] = (),
    done: frozenset[int] = frozenset(),
) -> int:
    """Run the workflow in a directory that is claimed, and return the exit code."""
    from jobmeter.settings import resolve

    chosen = RunOptions(
        store=resolve("store", options.store),
        capacity=capacity,
        enforce=options.enforce or plan.enforce,
        monitoring=not options.no_resource_monitoring,
    )
    directory.keep_plan(plan, capacity)
    directory.announce()
    # A job whose shepherd is killed becomes our child, and we are told how it ended.
    become_subreaper()
    teller = Teller(directory, quiet=options.quiet)
    run = WorkflowRun(plan, directory, chosen, before=before, done=done, listener=teller, warn=teller.warn)
    stopping = _Stopping(run)
    result = _show(run, teller, len(done), quiet=options.quiet)
    stopping.over = True
    directory.release()
    if not options.quiet:
        numbers = {job.number for job in plan.jobs}  # some may have left the spec since
        tell_end(plan, directory, result, [each for each in (*before, *result.attempts) if each.number in numbers])
    if plan.monitor.generate_plots and chosen.monitoring:
        from jobmeter.cli.workflow.plots import draw_plots

        runs = [attempt.run for attempt in (*before, *result.attempts)]
        draw_plots(directory, chosen.store, runs, quiet=options.quiet)
    if result.stopped:
        return 128 + stopping.first
    return 0 if result.succeeded else 1


class _Stopping:
    """Has a workflow stop when a signal says so; the second time they mean it, and no job gets a farewell."""

    def __init__(self, run: WorkflowRun) -> None:
        self.first = 0  # the signal that did it
        self.over = False  # nothing runs any more: a signal may end us as it would any program
        self._run = run
        self._last = 0.0
        Forwarder(self._receive, ENDING)

    def _receive(self, number: int, from_terminal: bool) -> None:
        if self.over:
            os._exit(128 + number)
        now = time.monotonic()
        again = self.first != 0 and (from_terminal or now - self._last > _SAME_CALL)
        self._last = now
        self.first = self.first or number
        self._run.stop(at_once=again)


def _show(run: WorkflowRun, teller: Teller, done: int, *, quiet: bool) -> Result:
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return run.run()
    from jobmeter.cli.workflow.display import Display

    with Display(run, done) as display:
        teller.console = display.console
        return run.run()
