"""The curves of stored runs, and the page they are drawn on: shared by the commands that plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobmeter.garbage import no_collection
from jobmeter.links import open_output

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.report.plot.series import JobCurves
    from jobmeter.store import Store

_POINTS = 200_000
"""Most points in a page, divided among the curves: a browser draws these without a pause."""
_FEWEST, _MOST = 60, 500
"""Points of a curve: fewer would lose its shape, more cannot be seen."""


def curves_of(store: Store, rows: Sequence[StoredRun], keys: Sequence[str] = ()) -> list[JobCurves]:
    """The curves of every run, of these measurements if some are named; a run may have none."""
    from jobmeter.report.plot.series import STANDARD, distinguishing_length, job_curves

    curves = len(rows) * (len(keys) or len(STANDARD)) * 2
    most = min(max(_POINTS // max(curves, 1), _FEWEST), _MOST)
    short = distinguishing_length([row["id"] for row in rows])
    jobs = []
    with no_collection():  # of hundreds of thousands of windows, for half of the time
        for row in rows:
            jobs.append(job_curves(row, store.journal(row["id"]), keys, most)._replace(short=short))
    return jobs


def write_page(path: str, jobs: Sequence[JobCurves], of_day: bool = False) -> None:
    """Write one page with all runs. Raises OSError if it cannot be written."""
    from jobmeter.report.plot.page import page

    with open(open_output(path), "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page(jobs, of_day))
