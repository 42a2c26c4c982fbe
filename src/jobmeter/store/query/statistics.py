"""The statistics of groups of runs, by SQL where there may be a million of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, select

from jobmeter.analyse.statistics import (
    FIGURES,
    LEVELS,
    SPREAD,
    UNENDED,
    GroupStatistics,
    GroupTotals,
    Spread,
    group,
    most_first,
    position,
)
from jobmeter.model import Status
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.expression import label_column
from jobmeter.store.query.selection import Selection
from jobmeter.store.store import Store

_JOB = job_metadata.c


def statistics(store: Store, selection: Selection, by_label: str | None = None) -> list[GroupStatistics]:
    """The statistics of the runs selected, by name or by the value of a label; those of most runs first."""
    if by_label is None and selection == Selection(names=selection.names, statuses=selection.statuses):
        return _by_name(store, selection)
    key: ColumnElement[str] = _JOB.job_name if by_label is None else label_column(by_label)
    statement = select(key, *(_JOB[name] for name in FIGURES)).where(store.condition(selection))
    return group(store.query(statement))


def _by_name(store: Store, selection: Selection) -> list[GroupStatistics]:
    """Sums in one pass over an index; quantiles by walking the indexes that hold each figure in order."""
    groups = []
    running = _running(store, selection)
    for row in store.query(_sums(store, selection)):
        name, counts, totals = row[0], row[1 : 1 + len(SPREAD)], GroupTotals._make(row[1 + len(SPREAD) :])
        totals = totals._replace(ended=totals.runs - running.get(name, 0))
        spreads = {
            figure: _spread(store, selection, name, figure, count) for figure, count in zip(SPREAD, counts) if count
        }
        groups.append(GroupStatistics(name, totals, spreads))
    return most_first(groups)


def _sums(store: Store, selection: Selection) -> Select[Any]:
    """The name, how many runs have each figure of SPREAD, and the totals, those that have not ended among the ended."""
    wall, cpu, cpus = _JOB.wall_seconds, _JOB.cpu_seconds, _JOB.requirement_cpus
    statement = select(
        _JOB.job_name,
        *(func.count(_JOB[figure]) for figure in SPREAD),
        func.count(),
        func.count(),
        func.sum(case((_JOB.status == Status.COMPLETED.value, 1), else_=0)),
        func.sum(wall),
        func.sum(cpu),
        func.sum(_JOB.memory_mean_bytes * wall),
        func.sum(case((cpu.is_not(None), cpus * wall))),
        func.sum(case(((cpus * wall).is_not(None), cpu))),
    )
    return statement.where(_condition(store, selection)).group_by(_JOB.job_name)


def _running(store: Store, selection: Selection) -> dict[str, int]:
    """How many runs of each name have not ended, according to the index."""
    statuses = [status.value for status in UNENDED if not selection.statuses or status in selection.statuses]
    if not statuses:
        return {}
    mine = store.condition(selection._replace(statuses=statuses))
    counts = store.query(select(_JOB.job_name, func.count().label("runs")).where(mine).group_by(_JOB.job_name))
    return {row.job_name: row.runs for row in counts}


def _condition(store: Store, selection: Selection) -> ColumnElement[bool]:
    """The selection, written so that SQLite does not use the index of statuses and look up every run in it."""
    named = store.condition(selection._replace(statuses=()))
    return and_(named, _JOB.status.concat("").in_(selection.statuses)) if selection.statuses else named


def _spread(store: Store, selection: Selection, name: str, figure: str, count: int) -> Spread:
    """Exact quantiles. Counted from the top: NULLs lie at the bottom, and p95 and max are near."""
    mine = and_(_JOB.job_name == name, _condition(store, selection._replace(names=())))
    ordered = select(_JOB[figure]).where(mine).order_by(_JOB[figure].desc())
    levels = {}
    for title, level in LEVELS.items():
        index, part = position(count, level)
        above = count - 1 - index
        # The value at `index` and, where the quantile lies between two, the one above it.
        offset, limit = (above - 1, 2) if part else (above, 1)
        values = [value for (value,) in store.query(ordered.limit(limit).offset(offset))]
        levels[title] = values[-1] + (values[0] - values[-1]) * part
    return levels
