"""Finds a run by id, prefix, name or `last`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Row, Select, select

from jobmeter.errors import UsageError
from jobmeter.model import workflow_id
from jobmeter.store.index.tables import job_metadata
from jobmeter.suggestion import suggest

_MOST_CANDIDATES = 10


class NoSuchRun(UsageError):
    """No run has this name, and no id begins with it."""


Query = Callable[[Select[Any]], list[Row[Any]]]


def resolve_run(query: Query, text: str) -> str:
    """The id of the run named by id, `last`, name (its newest run) or unique prefix, tried in this order.

    Raises NoSuchRun if there is none, UsageError if several ids have the prefix.
    """
    job = job_metadata.c
    newest = select(job.job_id).order_by(job.started.desc()).limit(1)
    for statement in (
        select(job.job_id).where(job.job_id == text),
        newest if text == "last" else None,
        newest.where(job.job_name == text),
    ):
        rows = query(statement) if statement is not None else []
        if rows:
            return str(rows[0].job_id)
    return _by_prefix(query, text)


def find_workflow(query: Query, text: str) -> str | None:
    """The id of the workflow named by id or name; None if it has no stored run."""
    job = job_metadata.c
    for candidate in (text, workflow_id(text)):
        if query(select(job.number).where(job.workflow_id == candidate).limit(1)):
            return candidate
    return None


def did_you_mean(query: Query, text: str) -> str:
    """`Did you mean 'hogs'?` for a job or workflow; empty if no name is similar to `text`."""
    job = job_metadata.c
    names = (str(name) for column in (job.workflow_id, job.job_name) for (name,) in query(select(column).distinct()))
    return suggest(text, names, "")


def _by_prefix(query: Query, text: str) -> str:
    job = job_metadata.c
    # A range, which the index of ids answers; ids are ASCII.
    begins = (job.job_id >= text) & (job.job_id < text + "\x7f")
    columns = (job.job_id, job.job_name, job.status, job.started)
    rows = query(select(*columns).where(begins).order_by(job.started.desc()).limit(_MOST_CANDIDATES + 1))
    if not text or not rows:
        if text == "last":
            raise UsageError("there are no runs yet. `jobmeter run -- COMMAND` stores one.")
        raise NoSuchRun(
            f"there is no run {text!r}: it is not a name, nor the beginning of an id. `jobmeter ls` lists runs."
        )
    if len(rows) == 1:
        return str(rows[0].job_id)
    lines = [f"  {row.job_id}  {row.started}  {row.status:<9}  {row.job_name}" for row in rows[:_MOST_CANDIDATES]]
    more = ["  … and more"] if len(rows) > _MOST_CANDIDATES else []
    raise UsageError(f"{text!r} is the beginning of several ids; give more letters:", *lines, *more)
