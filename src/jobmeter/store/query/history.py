"""The history of a job: its runs under a name, or as a step of a workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select

from jobmeter.analyse.size import MOST_RUNS
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.overuse import judged_rows
from jobmeter.store.query.selection import Selection, match_glob
from jobmeter.store.store import Store

_JOB = job_metadata.c
_JOB_STEP: ColumnElement[str] = func.json_extract(_JOB.workflow_job, "$.step")


class History(NamedTuple):
    """Of one job."""

    name: str
    rows: list[StoredRun]  # the newest runs, newest first
    older_peak: float  # the most memory of any run there ever was


def workflow_histories(store: Store, workflow: str) -> Iterator[History]:
    """Of each step of a workflow, over all its runs, in the order of the spec."""
    mine = store.condition(Selection(workflow=workflow))
    first = func.min(func.json_extract(_JOB.workflow_job, "$.job_id"))
    steps = store.query(select(_JOB_STEP).where(mine).group_by(_JOB_STEP).order_by(first))
    for (step,) in steps:
        yield _history(store, str(step), mine & _JOB_STEP.is_(step))


def name_histories(store: Store, pattern: str) -> Iterator[History]:
    """Of each job whose name matches; a job of workflows has the name under which it ran."""
    # A name may have brackets in it, and is then no glob that matches itself.
    mine = match_glob(_JOB.job_name, pattern) | (_JOB.job_name == pattern)
    names = store.query(select(_JOB.job_name).distinct().where(mine))
    for name in sorted(str(name) for (name,) in names):
        yield _history(store, name, _JOB.job_name == name)


def _history(store: Store, name: str, mine: ColumnElement[bool]) -> History:
    peak = store.query(select(func.max(_JOB.memory_peak_bytes)).where(mine))[0][0]
    return History(name, judged_rows(store, mine, MOST_RUNS), float(peak or 0))
