"""The history of a job: its runs under a name, or as a step of a workflow."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select

from jobmeter.analyse.size.predictor import MOST_RUNS
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.overuse import judged_rows
from jobmeter.store.query.selection import Selection, match_glob
from jobmeter.store.store import Store

_JOB = job_metadata.c
_MANY = 200_000
"""If there are more runs, only the newest of each job are fetched, one job at a time."""
_JOB_STEP: ColumnElement[str] = func.json_extract(_JOB.workflow_job, "$.step")


class History(NamedTuple):
    """The history of one job."""

    name: str
    rows: list[StoredRun]  # the newest runs, newest first


def workflow_histories(store: Store, workflow: str, only: Container[str] | None = None) -> Iterator[History]:
    """The history of each step of a workflow, or of `only` these, over all its runs, in the order of the spec."""
    mine = store.condition(Selection(workflow=workflow))
    first = func.min(func.json_extract(_JOB.workflow_job, "$.job_id"))
    steps = store.query(select(_JOB_STEP).where(mine).group_by(_JOB_STEP).order_by(first))
    for (step,) in steps:
        if only is None or step in only:
            yield _history(store, str(step), mine & _JOB_STEP.is_(step))


def name_histories(store: Store, pattern: str) -> Iterator[History]:
    """The history of each job whose name matches; a job of workflows has the name under which it ran."""
    # A name with brackets, taken as a glob, would not match itself.
    mine = match_glob(_JOB.job_name, pattern) | (_JOB.job_name == pattern)
    return _by_name(store, mine)


def source_histories(store: Store, file: int) -> Iterator[History]:
    """The history of each job that has a run in this file of the store."""
    names = select(_JOB.job_name).where(_JOB.file == file)
    return _by_name(store, _JOB.job_name.in_(names))


def _by_name(store: Store, mine: ColumnElement[bool]) -> Iterator[History]:
    """The history of each job. One statement for all jobs, unless there are far more runs than a history uses."""
    counts = [
        tuple(row) for row in store.query(select(_JOB.job_name, func.count()).where(mine).group_by(_JOB.job_name))
    ]
    if sum(count for _, count in counts) > _MANY:
        for name, _ in sorted(counts):
            yield _history(store, str(name), _JOB.job_name == name)
        return
    rows_by_name: dict[str, list[StoredRun]] = {str(name): [] for name, _ in sorted(counts)}
    for row in judged_rows(store, mine):
        rows_by_name[row["name"]].append(row)
    for name, rows in rows_by_name.items():
        yield History(name, rows[:MOST_RUNS])


def _history(store: Store, name: str, mine: ColumnElement[bool]) -> History:
    return History(name, judged_rows(store, mine, MOST_RUNS))
