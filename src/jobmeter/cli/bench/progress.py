"""The progress of a benchmark: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jobmeter.session.measuring import ignore
from jobmeter.terminal import printable

if TYPE_CHECKING:
    from jobmeter.cli.bench.running import Step

_NAME = 24


@contextlib.contextmanager
def progress(*, shown: bool) -> Iterator[Callable[[Step], None]]:
    """Yield a function to call with every step. The bar is shown inside the `with` block."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield ignore
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from jobmeter.cli.shared.console import TextConsole

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=TextConsole(sys.stderr), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("")

        def on_step(step: Step) -> None:
            name = printable(step.variant.name)
            name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
            words = f"warming up: {name}" if step.is_warmup else name
            bar.update(task, description=words, completed=step.number - 1, total=step.total)

        yield on_step
