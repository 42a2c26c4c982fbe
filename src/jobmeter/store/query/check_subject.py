"""Finds what `check` is to examine: runs, or the jobs of one run of a workflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import ColumnElement, or_

from jobmeter.errors import UsageError
from jobmeter.store import Selection
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.newest_import import imported_last
from jobmeter.store.query.run_names import NoSuchRun, did_you_mean

if TYPE_CHECKING:
    from jobmeter.store import Store


class Subject(NamedTuple):
    """Runs, as an SQL condition; if all are of one run of a workflow, also the workflow's id and the run's number."""

    condition: ColumnElement[bool]
    workflow: str | None = None
    run: int | None = None


def subject(store: Store, names: Sequence[str], filters: Selection, run: int | None) -> Subject:
    """The runs that these names and filters select.

    Without any: the runs that were imported last, else the newest run, or all jobs of its run of a workflow. Raises
    UsageError for names and runs that do not exist.
    """
    if names:
        subjects = [_named(store, name, filters, run) for name in names]
        return subjects[0] if len(subjects) == 1 else Subject(or_(*(one.condition for one in subjects)))
    if _narrows(filters) and run is None:
        return Subject(store.condition(filters))
    if run is None and (file := imported_last(store)) is not None:
        return Subject(job_metadata.c.file == file)
    newest = next(store.runs(filters._replace(limit=1)), None)
    if newest is None:
        store.resolve("last")  # raises UsageError if the store is empty
        raise UsageError("no runs found")
    if "workflow" in newest:
        return _workflow(store, newest["workflow"], filters, newest["workflow_run"] if run is None else run)
    if run is not None:
        raise UsageError("--run-id selects a run of a workflow. Name the workflow.")
    return Subject(job_metadata.c.job_id == newest["id"])


def _named(store: Store, name: str, filters: Selection, run: int | None) -> Subject:
    workflow = store.find_workflow(name)
    if workflow is not None:
        return _workflow(store, workflow, filters, run)
    if run is not None:
        raise UsageError(f"--run-id selects a run of a workflow, and {name!r} has no stored run")
    return Subject(store.condition(filters) & (job_metadata.c.job_id == resolve_run_or_suggest(store, name)))


def resolve_run_or_suggest(store: Store, name: str) -> str:
    """The id of the run that is named. Raises UsageError, which suggests a similar name, if there is none."""
    try:
        return store.resolve(name)
    except NoSuchRun:
        if hint := did_you_mean(store.query, name):
            raise UsageError(f"there is no run and no workflow {name!r}. {hint}") from None
        raise


def _workflow(store: Store, workflow: str, filters: Selection, run: int | None) -> Subject:
    number = workflow_run(store, workflow, run)
    return Subject(store.condition(filters._replace(workflow=workflow, workflow_run=number)), workflow, number)


def workflow_run(store: Store, workflow: str, run: int | None) -> int:
    """The number of a workflow's run: `run` if given, else the newest. Raises UsageError if it has no such run."""
    runs = store.workflow_runs(workflow)
    if run is not None and run not in runs:
        there = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        raise UsageError(f"--run-id: {workflow!r} has no run {run}. Stored runs: {there}.")
    return runs[-1] if run is None else run


def _narrows(filters: Selection) -> bool:
    """Whether any filter was given."""
    return any(part not in (None, [], (), {}) for part in filters[: Selection._fields.index("sort")])
