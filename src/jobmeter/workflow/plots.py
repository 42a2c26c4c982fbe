"""The plots that a workflow requests with `generate_plots`: one page of its jobs' curves, beside its logs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.errors import JobmeterError
from jobmeter.workflow.attempts import of_row
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.summary import cost

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.store import Store

_MOST = 50
"""Jobs on the page: more are no use to anyone, and `jobmeter plot` draws any."""


class Plots(NamedTuple):
    """A page that was drawn."""

    path: str
    drawn: int  # runs on it
    runs: int  # that there were


def draw_plots(directory: RunDirectory, store: str, runs: Collection[str], warn: Callable[[str], None]) -> Plots | None:
    """Draw the costliest of these runs to `plots.html` of the directory.

    The workflow is over: whatever goes wrong is a warning of one line, and no failure of it.
    """
    path = f"{directory.path}/plots.html"
    try:
        return Plots(path, _draw(path, directory, store, frozenset(runs), warn), len(runs))
    except (JobmeterError, ImportError) as error:
        warn(f"no plots: {error}")
    except OSError as error:
        warn(f"no plots: {error.filename or path}: {error.strerror}")
    return None


def _draw(path: str, directory: RunDirectory, location: str, runs: Collection[str], warn: Callable[[str], None]) -> int:
    """Write the page, and return how many runs are on it."""
    from jobmeter.report.plot.curves import curves_of, write_page
    from jobmeter.store import open_store

    store = open_store(location, warn)
    rows = costliest(store, directory, runs)
    if not rows:
        raise JobmeterError("no job was run")
    write_page(path, curves_of(store, rows))
    return len(rows)


def costliest(store: Store, directory: RunDirectory, runs: Collection[str]) -> list[StoredRun]:
    """The rows of the runs that cost most, in the order in which they started."""
    from jobmeter.store import Selection

    of_this_run = Selection(workflow=directory.workflow, workflow_run=directory.run_id, descending=False)
    rows = [row for row in store.runs(of_this_run) if row["id"] in runs]
    chosen = {row["id"] for row in sorted(rows, key=lambda row: -cost(of_row(row)))[:_MOST]}
    return [row for row in rows if row["id"] in chosen]
