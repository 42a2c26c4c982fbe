"""`workflow status --watch`: shows the progress of a workflow until it ends."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from rich.console import Group
from rich.live import Live
from rich.text import Text

from jobmeter.cli.shared.console import TextConsole
from jobmeter.cli.shared.live_terminal import quiet_control_keys
from jobmeter.cli.workflow.screen import screen_lines
from jobmeter.terminal import printable
from jobmeter.workflow.history import StoredRun
from jobmeter.workflow.status import FAILED
from jobmeter.workflow.watching import Watching

_REDRAW = 0.5
_PROBLEMS = 3
"""At most one in this many lines of the terminal is for jobs that failed."""


def print_changes(stored: StoredRun, print_change: Callable[[StoredRun], None]) -> None:
    """Print the run whenever the number of its jobs with a status has changed, and once more at its end."""
    watching = Watching(stored)
    counts: dict[str, int] = {}
    while not watching.is_over:
        if watching.status.counts != counts:
            counts = watching.status.counts
            print_change(watching.stored)
            sys.stdout.flush()
        time.sleep(_REDRAW)
        watching.refresh()
    print_change(watching.stored)


def show_until_end(stored: StoredRun) -> StoredRun:
    """Show the run on the full screen until it ends, and return its final state. Then the terminal is as before."""
    watching = Watching(stored)
    if watching.is_over:
        return stored
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        console = TextConsole(sys.stdout)
        # Full screen: lines that a terminal rewraps when it becomes narrower could not be cleared.
        with quiet_control_keys(sys.stdout), Live(console=console, screen=True, auto_refresh=False) as live:
            while not watching.is_over:
                live.update(_screen(watching, console.width, console.height), refresh=True)
                time.sleep(_REDRAW)
                watching.refresh()
    finally:
        signal.signal(signal.SIGTERM, before)
    return watching.stored


def _screen(watching: Watching, width: int, height: int) -> Group:
    """The lines of the run, and below them the jobs that failed, as many as there is room for."""
    problems = [job for job in watching.status.jobs if job.status in FAILED]
    room = min(len(problems) + 1, height // _PROBLEMS) if problems else 0
    lines = screen_lines(watching.stored.plan["name"], watching.view(), width, height - room)
    if room > 1:
        left_out = len(problems) - (room - 1)
        lines.append(
            Text("failed" if left_out <= 0 else f"failed, the last {room - 1} of {len(problems):,}", style="dim")
        )
        lines += [Text(printable(f"{job.name}: {job.reason}"), style="red") for job in problems[-(room - 1) :]]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def _exit(number: int, frame: FrameType | None) -> None:
    """Exit with the code of the signal, after the terminal is restored."""
    raise SystemExit(128 + number)
