"""`jobmeter stats`: what the runs of each job have in common."""

from __future__ import annotations

import csv
import gc
import json
import sys
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.filters import add_filter_options, add_store_option, selection
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.settings import resolve
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.analyse.statistics import GroupStatistics, GroupTotals

_WIDE = 150
"""Width of a terminal from which on p50, p95 and max are side by side, not below one another."""
_RATES = ("runs", "success_rate", "core_hours", "gb_hours", "cpu_efficiency")


def main(arguments: list[str]) -> int:
    parser = Parser("stats", "Show, for each job name, how often it ran and succeeded, and what its runs used.")
    parser.add_argument("--by", metavar="LABEL", help="group by the value of this label instead of the name")
    add_filter_options(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print an object: groups, and the total of all")
    form.add_argument("--csv", action="store_true", help="print one line a group")
    add_store_option(parser)
    options = parser.parse_args(arguments)
    chosen = selection(options)
    from jobmeter.analyse.statistics import together
    from jobmeter.store import open_store
    from jobmeter.store.query.statistics import statistics

    store = open_store(resolve("store", options.store), warn)
    # Millions of rows without reference cycles: collecting garbage would take longer than all the rest.
    gc.disable()
    try:
        groups = statistics(store, chosen, options.by)
    finally:
        gc.enable()
    by = options.by or "name"
    total = together([group.totals for group in groups])
    if options.json:
        entry = {"by": by, "groups": [_object(by, group) for group in groups], "total": _rounded(total)}
        print(json.dumps(entry, indent=2))
    elif options.csv:
        _print_csv(by, groups)
    elif groups:
        _print_table(by, groups, total)
    else:
        warn("no runs found")
    return 0


def _rounded(totals: GroupTotals) -> dict[str, Any]:
    from jobmeter.analyse.statistics import rates

    return {name: value if isinstance(value, int) else round(value, 6) for name, value in rates(totals).items()}


def _object(by: str, group: GroupStatistics) -> dict[str, Any]:
    """A group as JSON: a run without the label is in the group that has no value."""
    entry: dict[str, Any] = {} if group.group is None else {by: group.group}
    entry.update(_rounded(group.totals))
    for figure, spread in group.spreads.items():
        entry[figure] = {name: round(value, 6) for name, value in spread.items()}
    return entry


def _print_csv(by: str, groups: list[GroupStatistics]) -> None:
    from jobmeter.analyse.statistics import LEVELS, SPREAD

    columns = [*_RATES, "wall_hours", "core_hours_asked"]
    spreads = [(figure, level) for figure in SPREAD for level in LEVELS]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([by, *columns, *(f"{figure}_{level}" for figure, level in spreads)])
    for group in groups:
        entry = _object(by, group)
        cells = [entry.get(column, "") for column in columns]
        writer.writerow(
            [entry.get(by, ""), *cells, *(entry.get(figure, {}).get(level, "") for figure, level in spreads)]
        )


def _print_table(by: str, groups: list[GroupStatistics], total: GroupTotals) -> None:
    from rich.console import Console
    from rich.table import Table

    from jobmeter.analyse.statistics import LEVELS, SPREAD_FIGURES

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200, highlight=False)
    between = " / " if console.width >= _WIDE else "\n"
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=len(groups) > 1)
    table.add_column(by, footer="total", overflow="fold")
    for heading, footer in zip(("runs", "success", "core-hours", "GB-hours", "CPU used"), _rate_cells(_rounded(total))):
        table.add_column(heading, justify="right", footer=footer)
    for figure in SPREAD_FIGURES:
        table.add_column(f"{figure.heading}\n{between.join(LEVELS)}", justify="right", no_wrap=True)
    for group in groups:
        table.add_row(_name(group), *_rate_cells(_rounded(group.totals)), *_spread_cells(group, between))
    console.print(table)


def _name(group: GroupStatistics) -> str:
    from rich.markup import escape

    return "(none)" if group.group is None else escape(group.group)


def _rate_cells(entry: dict[str, Any]) -> list[str]:
    shown = {"runs": "{:,}", "success_rate": "{:.1%}", "cpu_efficiency": "{:.0%}"}
    return [
        shown.get(name, "{:,.3g}" if entry[name] < 1000 else "{:,.0f}").format(entry[name]).replace("%", " %")
        if name in entry
        else "-"
        for name in _RATES
    ]


def _spread_cells(group: GroupStatistics, between: str) -> list[str]:
    from jobmeter.analyse.statistics import SPREAD_FIGURES

    cells = []
    for figure in SPREAD_FIGURES:
        values = group.spreads.get(figure.name, {}).values()
        cells.append(between.join(text(round(value, 6), figure.unit) for value in values) or "-")
    return cells
