"""Computes statistics of groups of runs, in SQL where there may be a million runs."""

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
from jobmeter.model import OWN_SOURCE, Status
from jobmeter.store.index.tables import is_foreign, job_metadata
from jobmeter.store.query.expression import label_column
from jobmeter.store.query.selection import Selection
from jobmeter.store.store import Store

_JOB = job_metadata.c


def statistics(store: Store, selection: Selection, by: str | None = None) -> list[GroupStatistics]:
    """Statistics of the selected runs, by name, by `source` or by the value of a label; the largest group first.

    Runs of different sources are never in one group.
    """
    if by is None and selection == Selection(names=selection.names, statuses=selection.statuses):
        return _by_name(store, selection)
    key = _JOB.job_name if by is None else _JOB.source if by == "source" else label_column(by)
    return _grouped(store, key, store.condition(selection))


def _grouped(store: Store, key: ColumnElement[str], condition: ColumnElement[bool]) -> list[GroupStatistics]:
    return group(store.query(select(key, _JOB.source, *(_JOB[name] for name in FIGURES)).where(condition)))


def _by_name(store: Store, selection: Selection) -> list[GroupStatistics]:
    """Sums in one pass over an index; quantiles by walking the indexes that hold each figure in order."""
    groups = []
    running = _running(store, selection)
    foreign = _foreign(store, selection)
    mixed = []
    for row in store.query(_sums(store, selection)):
        name, counts, totals = row[0], row[1 : 1 + len(SPREAD)], GroupTotals._make(row[1 + len(SPREAD) :])
        source = _only_source(foreign.get(name, {}), totals.runs)
        if source is None:
            mixed.append(name)
            continue
        totals = totals._replace(ended=totals.runs - running.get(name, 0))
        spreads = {
            figure: _spread(store, selection, name, figure, count) for figure, count in zip(SPREAD, counts) if count
        }
        groups.append(GroupStatistics(name, source, totals, spreads))
    for name in mixed:
        groups += _grouped(store, _JOB.job_name, (_JOB.job_name == name) & store.condition(selection))
    return most_first(groups)


def _foreign(store: Store, selection: Selection) -> dict[str, dict[str, int]]:
    """Name → source → how many runs another tool measured. Few names have such runs; a partial index finds them."""
    condition = is_foreign(job_metadata) & _condition(store, selection)
    counts: dict[str, dict[str, int]] = {}
    statement: Select[Any] = select(_JOB.job_name, _JOB.source, func.count()).where(condition)
    for row in store.query(statement.group_by(_JOB.source, _JOB.job_name)):
        name, source, count = tuple(row)
        counts.setdefault(name, {})[source] = count
    return counts


def _only_source(foreign: dict[str, int], runs: int) -> str | None:
    """The source of all these runs; None when there are several."""
    if not foreign:
        return OWN_SOURCE
    source, count = next(iter(foreign.items()))
    return source if count == runs else None


def _sums(store: Store, selection: Selection) -> Select[Any]:
    """The statement for each name, how many of its runs have each figure of SPREAD, and the totals.

    In the totals, runs that have not ended are counted as ended.
    """
    wall, cpu, cpus = _JOB.wall_seconds, _JOB.cpu_seconds, _JOB.requirement_cpus
    statement = select(
        _JOB.job_name,
        *(func.count(_JOB[figure]) for figure in SPREAD),
        func.count(),
        func.count(),
        func.sum(case((_JOB.status == Status.COMPLETED.value, 1), else_=0)),
        func.sum(wall),
        func.sum(cpu),
        func.sum(func.coalesce(_JOB.memory_mean_bytes, _JOB.memory_peak_bytes) * wall),
        func.sum(case((cpu.is_not(None), cpus * wall))),
        func.sum(case(((cpus * wall).is_not(None), cpu))),
        func.sum(_JOB.energy_joules),
        func.sum(_JOB.gpu_seconds),
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
    """The selection, written so that SQLite does not use the index of statuses, and then look up each run."""
    named = store.condition(selection._replace(statuses=()))
    return and_(named, _JOB.status.concat("").in_(selection.statuses)) if selection.statuses else named


def _spread(store: Store, selection: Selection, name: str, figure: str, count: int) -> Spread:
    """Exact quantiles. Rows are counted from the top: NULLs are at the bottom, and p95 and max are near the top."""
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
