"""The table of `stats`, in two forms: one line a group, or one line a quantile where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobmeter.analyse.cost import NO_FACTORS, Factors
from jobmeter.analyse.statistics import (
    LEVELS,
    SPREAD_FIGURES,
    GroupStatistics,
    GroupTotals,
    SpreadFigure,
    rounded_rates,
)
from jobmeter.report.table_layout import Column
from jobmeter.units import text, without_unit

_RATES = ("success_rate", "cpu_efficiency", "core_hours", "gb_hours")
_IF_KNOWN = ("gpu_hours", "energy_kwh", "carbon_grams", "cost")
"""Columns that are shown only if the store has such figures."""
_NOTHING = "-"
_LEAST_HOURS = 0.0001
"""Core-hours and the like that are not 0 but below this are shown as less than this."""


class StatsTable(NamedTuple):
    columns: list[Column]
    rows: list[list[str]]
    has_total: bool  # in the last row


def flat_table(
    by: str, groups: Sequence[GroupStatistics], total: GroupTotals, factors: Factors = NO_FACTORS
) -> StatsTable:
    """One line a group: p50, p95 and max of a figure side by side."""
    rates = _Rates(total, factors)
    spreads = [(figure, level) for figure in SPREAD_FIGURES for level in LEVELS]
    middle = [Column(f"{without_unit(figure.name)}_{level}", figure.unit) for figure, level in spreads]
    rows = [
        [
            *_identity(by, groups, group),
            *(_amount(group, figure, level) for figure, level in spreads),
            *rates.cells(group.totals),
        ]
        for group in groups
    ]
    return _with_total(by, groups, middle, rows, rates)


def tall_table(
    by: str, groups: Sequence[GroupStatistics], total: GroupTotals, factors: Factors = NO_FACTORS
) -> StatsTable:
    """Three lines a group: p50, p95 and max below one another; one line where they are the same."""
    rates = _Rates(total, factors)
    middle = [Column("level", essential=True)]
    middle += [Column(without_unit(figure.name), figure.unit) for figure in SPREAD_FIGURES]
    rows = []
    for group in groups:
        before, after = _identity(by, groups, group), rates.cells(group.totals)
        amounts = {level: [_amount(group, figure, level) for figure in SPREAD_FIGURES] for level in LEVELS}
        are_same = len(set(map(tuple, amounts.values()))) == 1
        for level in ["all"] if are_same else LEVELS:
            rows.append([*before, level, *amounts["max" if are_same else level], *after])
            before, after = [""] * len(before), [""] * len(after)
    return _with_total(by, groups, middle, rows, rates)


def _with_total(
    by: str, groups: Sequence[GroupStatistics], middle: list[Column], rows: list[list[str]], rates: _Rates
) -> StatsTable:
    columns = [Column(by, essential=True, shortens=True)]
    if _has_sources(by, groups):
        columns.append(Column("source", essential=True))
    columns += [Column("runs", "count", essential=True), *middle, *(Column(name, "count") for name in rates.names)]
    has_total = len(groups) > 1
    if has_total:
        first = ["total", *([""] if _has_sources(by, groups) else []), f"{rates.total.runs:,}"]
        rows = [*rows, [*first, *([""] * len(middle)), *rates.cells(rates.total)]]
    return StatsTable(columns, rows, has_total)


def _has_sources(by: str, groups: Sequence[GroupStatistics]) -> bool:
    return by != "source" and len({group.source for group in groups}) > 1


def _identity(by: str, groups: Sequence[GroupStatistics], group: GroupStatistics) -> list[str]:
    name = "(none)" if group.group is None else group.group
    return [name, *([group.source] if _has_sources(by, groups) else []), f"{group.totals.runs:,}"]


class _Rates:
    """The last columns: what follows from the sums of a group."""

    def __init__(self, total: GroupTotals, factors: Factors) -> None:
        self.total = total
        self._factors = factors
        rates = rounded_rates(total, factors)
        self.names = (*_RATES, *(name for name in _IF_KNOWN if name in rates))

    def cells(self, totals: GroupTotals) -> list[str]:
        rates = rounded_rates(totals, self._factors)
        return [_rate(name, rates[name]) if name in rates else _NOTHING for name in self.names]


def _rate(name: str, value: float) -> str:
    if name in ("success_rate", "cpu_efficiency"):
        return f"{100 * value:.{1 if name == 'success_rate' else 0}f} %"
    if name.endswith("_hours") and 0 < value < _LEAST_HOURS:
        return f"< {_LEAST_HOURS:.4f}"
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _amount(group: GroupStatistics, figure: SpreadFigure, level: str) -> str:
    value = group.spreads.get(figure.name, {}).get(level)
    return _NOTHING if value is None else text(round(value, 6), figure.unit)
