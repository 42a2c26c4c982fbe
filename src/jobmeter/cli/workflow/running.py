"""What `workflow run` and `workflow resume` share: run to the end, show how it goes, tell what became of it."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from jobmeter.cli.output import warn
from jobmeter.cli.workflow.telling import Teller, tell_end
from jobmeter.launch.signals import ENDING, Forwarder
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.capacity import Capacity
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.plan import Plan
from jobmeter.workflow.run import Result, RunOptions, WorkflowRun


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
    teller = Teller(directory, quiet=options.quiet)
    run = WorkflowRun(plan, directory, chosen, before=before, done=done, listener=teller, warn=warn)
    stopped_by = _stop_on_signals(run)
    result = _show(run, teller, len(done), quiet=options.quiet)
    directory.release()
    if not options.quiet:
        tell_end(plan, directory, result, [*before, *result.attempts])
    if plan.monitor.generate_plots and chosen.monitoring:
        from jobmeter.cli.workflow.plots import draw_plots

        draw_plots(directory, chosen.store, [attempt.run for attempt in result.attempts])
    if result.stopped:
        return 128 + stopped_by[0]
    return 0 if result.succeeded else 1


def _stop_on_signals(run: WorkflowRun) -> list[int]:
    """Have the workflow stop when it is told to; the list gets the signal that did it."""
    received: list[int] = []

    def receive(number: int, from_terminal: bool) -> None:
        # The second time they mean it.
        run.stop(at_once=bool(received))
        received.append(number)

    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    Forwarder(receive, ENDING)
    return received


def _show(run: WorkflowRun, teller: Teller, done: int, *, quiet: bool) -> Result:
    if quiet or not sys.stderr.isatty():
        return run.run()
    from jobmeter.cli.workflow.display import Display

    with Display(run, done) as display:
        teller.console = display.console
        return run.run()
