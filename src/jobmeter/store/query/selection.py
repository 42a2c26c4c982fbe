"""Selections of runs, and their SQL conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, or_, select, true

from jobmeter.errors import UsageError
from jobmeter.moments import checked_moment
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.expression import compile_expression, label_column
from jobmeter.store.query.fields import check_field
from jobmeter.times import utc


class Selection(NamedTuple):
    """Which runs, in which order, and how many; by default all of them."""

    names: Sequence[str] = ()  # globs; one of them must match
    statuses: Sequence[str] = ()
    sources: Sequence[str] = ()  # tools that made the figures
    labels: Mapping[str, str] = {}
    workflow: str | None = None  # its id
    workflow_run: int | None = None
    since: float | None = None  # started at that time or later, seconds since 1970
    until: float | None = None  # started before
    where: str | None = None  # see `jobmeter.store.query.expression`
    sort: str = "started"
    descending: bool = True
    limit: int | None = None


def condition(selection: Selection) -> ColumnElement[bool]:
    """The selection as an SQL condition. Raises UsageError if its expression cannot be parsed, or a time cannot be."""
    job = job_metadata.c
    parts: list[ColumnElement[bool]] = []
    if selection.names:
        parts.append(or_(*(match_glob(job.job_name, name) for name in selection.names)))
    if selection.statuses:
        parts.append(job.status.in_(selection.statuses))
    if selection.sources:
        parts.append(job.source.in_(selection.sources))
    parts += [label_column(key) == value for key, value in selection.labels.items()]
    if selection.workflow is not None:
        parts.append(job.workflow_id == selection.workflow)
    if selection.workflow_run is not None:
        parts.append(job.workflow_run == selection.workflow_run)
    if selection.since is not None:
        parts.append(job.started >= _text(selection.since))
    if selection.until is not None:
        parts.append(job.started < _text(selection.until))
    if selection.where:
        parts.append(compile_expression(selection.where))
    return and_(true(), *parts)


def _text(seconds: float) -> str:
    """A time as the index has it, to compare."""
    return utc(checked_moment(seconds, f"{seconds:g} seconds since 1970"))


def match_glob(column: ColumnElement[Any], pattern: str) -> ColumnElement[bool]:
    if any(letter in pattern for letter in "*?["):
        return column.op("GLOB", is_comparison=True)(pattern)
    return column == pattern


def ordered(selection: Selection, columns: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """The statement for these columns of the selected runs, in order. Raises UsageError as `Store.runs` does."""
    field = check_field(selection.sort)
    if selection.limit is not None and selection.limit < 0:
        raise UsageError(f"a limit of {selection.limit} is below 0")
    column = job_metadata.c[field.column]
    order = column.desc() if selection.descending else column.asc()
    # Runs without the figure come last in both directions. `started` is always known: its SQL index gives the order.
    absent_last = () if field.column == "started" else (column.is_(None),)
    statement = select(*columns).where(condition(selection)).order_by(*absent_last, order)
    return statement if selection.limit is None else statement.limit(selection.limit)
