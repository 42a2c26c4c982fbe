"""The cell magic `%%jobmeter` for IPython and Jupyter; `%load_ext jobmeter` makes it known."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NoReturn

from jobmeter.errors import UsageError
from jobmeter.settings import label

if TYPE_CHECKING:
    from jobmeter.api.results import Run


class _Parser(argparse.ArgumentParser):
    """Raises UsageError for wrong options, instead of exiting: a notebook has no program that could be ended."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%jobmeter: {message}")


def register(shell: Any) -> None:
    """Make `%%jobmeter` known to this shell."""

    def jobmeter(line: str, cell: str) -> Run | None:
        """Measure this cell: `%%jobmeter [NAME] [--memory 2g] [--cpus 2] [--runtime 1h] [--label KEY=VALUE] …`."""
        return measure_cell(shell, line, cell)

    shell.register_magic_function(jobmeter, magic_kind="cell", magic_name="jobmeter")


def measure_cell(shell: Any, line: str, cell: str) -> Run | None:
    """Run the cell, and return what it used, which the notebook shows; None for `--quiet`, or if the cell fails.

    An exception of the cell is shown as without the magic, and its run is stored as failed.
    """
    from jobmeter.api.blocks import measure

    options = _options(line)
    meter = measure(
        options.name,
        labels=dict(options.label),
        cpus=options.cpus,
        memory=options.memory,
        runtime=options.runtime,
        interval=options.interval,
        store=options.store,
        keep=not options.no_store,
    )
    meter.start()
    error: BaseException | None = None
    try:
        result = shell.run_cell(cell)
        error = result.error_before_exec or result.error_in_exec
    finally:
        run = meter.stop(error)
    shell.user_ns["jobmeter_run"] = run
    return None if options.quiet or error is not None else run


def _options(line: str) -> argparse.Namespace:
    parser = _Parser("%%jobmeter", add_help=False)
    parser.add_argument("name", nargs="?", default="cell")
    for option in ("--memory", "--runtime", "--store"):
        parser.add_argument(option)
    for option in ("--cpus", "--interval"):
        parser.add_argument(option, type=float)
    parser.add_argument("--label", action="append", default=[], type=label)
    parser.add_argument("--no-store", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"%%jobmeter: {error}") from None
