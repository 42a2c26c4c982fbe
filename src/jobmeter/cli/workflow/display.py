"""The display on a terminal while a workflow runs. What it says is made in `screen`."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, cast

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from jobmeter.cli.shared.console import TextConsole
from jobmeter.cli.shared.live_terminal import PassingTerminal, quiet_control_keys
from jobmeter.cli.workflow.screen import screen_lines
from jobmeter.workflow.progress import Progress

if TYPE_CHECKING:
    from types import TracebackType

    from jobmeter.workflow.run import WorkflowRun

_PER_SECOND = 4


class Display:
    """Shows a run for as long as it is entered, and leaves nothing behind."""

    def __init__(self, run: WorkflowRun, done: int) -> None:
        """`done` is the number of jobs that were done before it began."""
        self.console = TextConsole(cast("IO[str]", PassingTerminal(sys.stderr)))
        self._name = run.plan.name
        self._progress = Progress(run, done)
        self._live = Live(
            self,
            console=self.console,
            refresh_per_second=_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
            # What is printed while jobs run goes through the console.
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Display:
        self._keys = quiet_control_keys(sys.stderr)
        self._keys.__enter__()
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        self._keys.__exit__(None, None, None)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from screen_lines(self._name, self._progress.look(), options.max_width, options.size.height)
