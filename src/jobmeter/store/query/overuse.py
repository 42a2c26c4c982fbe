"""Selects the runs that `check` judges: of very many runs, only those that can have used too much, by SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, or_, select

from jobmeter.analyse.check import job_of
from jobmeter.analyse.overuse import MEAN_OVER, PEAK_OVER, TICK_LAG
from jobmeter.analyse.resource import RESOURCES
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import Status
from jobmeter.store.index.quick_json import column_value
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.fields import FIELDS
from jobmeter.store.store import Store

MANY = 10_000
"""If there are more runs, only those that can have used too much are fetched."""
_FAILURES = 1000
_JOB = job_metadata.c
_MET = tuple(resource.limit_status.value for resource in RESOURCES if resource.limit_status)
UNSUCCESSFUL = (Status.FAILED.value, Status.KILLED.value, Status.CANCELLED.value, Status.LOST.value)
_NEEDED = (
    "id", "name", "status", "exit_code", "signal", "started", "wall_seconds", "cpu_seconds", "cpu_peak_percent",
    "cpu_mean_percent", "memory_peak_bytes", "cpu_quality", "memory_quality", "requirement_cpus",
    "requirement_memory_bytes", "requirement_runtime_seconds", "requirement_gpus", "gpus_peak", "at_least",
    "enforced", "source", "workflow", "workflow_run", "workflow_job", "labels", "read_bytes",
    "gpu_memory_peak_bytes",
)  # fmt: skip
_ATTEMPT: ColumnElement[int] = func.json_extract(_JOB.workflow_job, "$.attempt")
_JOB_NUMBER: ColumnElement[int] = func.json_extract(_JOB.workflow_job, "$.job_id")
_COLUMNS = [_JOB[FIELDS[name].column] for name in _NEEDED]
_OF_WORKFLOWS = job_metadata.alias()
_LATER_ATTEMPTS = select(_OF_WORKFLOWS.c.number).where(
    _OF_WORKFLOWS.c.workflow_id.is_not(None) & (func.json_extract(_OF_WORKFLOWS.c.workflow_job, "$.attempt") > 1)
)
"""A subquery, which the index of workflows answers first: there are few later attempts among very many runs."""


class RunsToCheck(NamedTuple):
    total: int  # jobs: later attempts are not counted
    rows: list[StoredRun]  # newest first
    is_all: bool  # else `rows` are those that may have used too much, later attempts, and the last failures
    failed: int  # attempts among all runs that failed for other reasons than a limit


def runs_to_check(store: Store, mine: ColumnElement[bool], *, everything: bool = False) -> RunsToCheck:
    """The runs for which `mine` is true; if they are many, only those that `check` has to report.

    With `everything`, all of them in any case.
    """
    total = _count(store, mine)
    unsuccessful = mine & _JOB.status.in_(UNSUCCESSFUL)
    if everything or total <= MANY:
        rows = judged_rows(store, mine)
        jobs = len({job_of(row).key for row in rows})
        return RunsToCheck(jobs, rows, True, sum(row["status"] in UNSUCCESSFUL for row in rows))
    # Whether an attempt is judged depends on the attempts after it.
    later = judged_rows(store, mine & _JOB.number.in_(_LATER_ATTEMPTS))
    suspects = judged_rows(store, mine & may_be_over())
    failures = judged_rows(store, unsuccessful, _FAILURES)
    rows_by_id = {row["id"]: row for row in (*suspects, *later, *failures)}
    jobs = total - len(later) + _without_first(store, mine, later)
    return RunsToCheck(jobs, _newest_first(rows_by_id.values()), False, _count(store, unsuccessful))


def _without_first(store: Store, mine: ColumnElement[bool], later: Sequence[StoredRun]) -> int:
    """How many jobs have a later attempt among the selected runs, but not their first attempt."""
    keys = {job_of(row).key for row in later}
    theirs = mine & _JOB.workflow_id.in_({str(key[0]) for key in keys}) & (_ATTEMPT == 1)
    columns = (_JOB.workflow_id, _JOB.workflow_run, _JOB_NUMBER)
    firsts: set[Any] = {tuple(row) for row in store.query(select(*columns).where(theirs))} if keys else set()
    return len(keys - firsts)


def _count(store: Store, condition: ColumnElement[bool]) -> int:
    return int(store.query(select(func.count()).select_from(job_metadata).where(condition))[0][0])


def may_be_over() -> ColumnElement[bool]:
    """True for every run in which `analyse.overuse.judge` finds over-use, and for few others."""
    requested = 100 * _JOB.requirement_cpus
    return or_(
        _JOB.memory_peak_bytes > _JOB.requirement_memory_bytes,
        _JOB.wall_seconds > _JOB.requirement_runtime_seconds,
        # Few runs request GPUs, and of the others SQLite need not read as far as this figure.
        _JOB.requirement_gpus.is_not(None) & (_JOB.gpus_peak > _JOB.requirement_gpus),
        # `judge` adds TICK_LAG for each CPU requested, rounded up: at least once.
        _JOB.cpu_peak_percent > PEAK_OVER * requested + TICK_LAG,
        _JOB.cpu_mean_percent > MEAN_OVER * requested,
        _JOB.status.in_(_MET),
    )


def judged_rows(store: Store, condition: ColumnElement[bool], limit: int | None = None) -> list[StoredRun]:
    """The fields of runs that `analyse.check` and `analyse.size` need, newest run first; at most `limit` runs."""
    statement = select(*_COLUMNS).where(condition)
    if limit is not None:
        statement = statement.order_by(_JOB.started.desc()).limit(limit)
    # Sorted here: to return few runs in order, SQLite would walk through all runs in that order.
    return _newest_first(_row(row) for row in store.query(statement))


def _newest_first(rows: Iterable[StoredRun]) -> list[StoredRun]:
    return sorted(rows, key=lambda row: str(row.get("started")), reverse=True)


def _row(values: Sequence[Any]) -> StoredRun:
    row = {name: value for name, value in zip(_NEEDED, values) if value is not None}
    if row["labels"] == "{}":
        del row["labels"]  # most runs have none
    for name in ("workflow_job", "enforced", "at_least", "labels"):
        if name in row:
            row[name] = column_value(row[name])
    return row
