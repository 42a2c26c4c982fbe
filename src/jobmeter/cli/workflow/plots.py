"""The plots that a workflow asks for with `generate_plots`: one page of its jobs' curves, beside its logs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from jobmeter.cli.shared.output import warn
from jobmeter.errors import JobmeterError
from jobmeter.workflow.attempts import of_row
from jobmeter.workflow.directory import RunDirectory
from jobmeter.workflow.summary import cost

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.store import Store

_MOST = 50
"""Jobs on the page: more are no use to anyone, and `jobmeter plot` draws any."""


def draw_plots(directory: RunDirectory, store: str, runs: Collection[str], *, quiet: bool = False) -> None:
    """Draw the costliest of these runs to `plots.html` of the directory, and tell where it is.

    The workflow is over: whatever goes wrong is told in one line, and is no failure of it.
    """
    path = f"{directory.path}/plots.html"
    try:
        drawn = _draw(path, directory, store, frozenset(runs))
    except (JobmeterError, ImportError) as error:
        warn(f"no plots: {error}")
        return
    except OSError as error:
        warn(f"no plots: {error.filename or path}: {error.strerror}")
        return
    if not quiet:
        left_out = f" (the costliest {drawn} of {len(runs):,} jobs)" if drawn < len(runs) else ""
        warn(f"plots: {path}{left_out}")


def _draw(path: str, directory: RunDirectory, location: str, runs: Collection[str]) -> int:
    """Write the page, and return how many runs are on it."""
    from jobmeter.cli.shared.curves import curves_of, write_page
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

    mine = Selection(workflow=directory.workflow, workflow_run=directory.run_id, descending=False)
    rows = [row for row in store.runs(mine) if row["id"] in runs]
    kept = {row["id"] for row in sorted(rows, key=lambda row: -cost(of_row(row)))[:_MOST]}
    return [row for row in rows if row["id"] in kept]
