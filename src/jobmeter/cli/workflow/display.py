"""The display on a terminal while a workflow runs; `screen` makes its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult

from jobmeter.cli.shared.live_display import LiveDisplay
from jobmeter.cli.workflow.screen import screen_lines
from jobmeter.workflow.progress import Progress

if TYPE_CHECKING:
    from jobmeter.workflow.run import WorkflowRun

_PER_SECOND = 4


class Display(LiveDisplay):
    """Shows a run inside its `with` block, and is cleared at the end."""

    def __init__(self, run: WorkflowRun, done: int) -> None:
        """`done` is the number of jobs that were done before the run began."""
        super().__init__(_PER_SECOND)
        self._name = run.plan.name
        self._progress = Progress(run, done)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from screen_lines(self._name, self._progress.view(), options.max_width, options.size.height)
