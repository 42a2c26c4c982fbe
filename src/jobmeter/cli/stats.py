"""`jobmeter stats`: statistics of the runs of each job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.factors import configured_factors
from jobmeter.cli.shared.filters import add_filter_options, selection
from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.exchange.csv_writer import CsvWriter
from jobmeter.garbage import no_collection
from jobmeter.settings import resolve
from jobmeter.terminal import data_output

if TYPE_CHECKING:
    from jobmeter.analyse.cost import Factors
    from jobmeter.analyse.statistics import GroupStatistics, GroupTotals
    from jobmeter.store import Store

_RATES = ("runs", "success_rate", "core_hours", "gb_hours", "cpu_efficiency")
_ENERGY = ("gpu_hours", "energy_kwh", "carbon_grams", "cost")


def main(arguments: list[str]) -> int:
    parser = Parser("stats", "Show, for each job name, how often it ran and succeeded, and what its runs used.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="runs of this name, or a glob such as 'train*'")
    parser.add_argument("--by", metavar="LABEL", help="group by this label, or by `source`, instead of the name")
    add_filter_options(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print an object: groups, and the total of all")
    form.add_argument("--csv", action="store_true", help="print one line a group")
    add_store_option(parser)
    options = parser.parse_args(arguments)
    chosen = selection(options)._replace(names=[*options.name, *options.names])
    from jobmeter.analyse.statistics import rounded_rates, together
    from jobmeter.store import open_store
    from jobmeter.store.query.statistics import statistics

    store = open_store(resolve("store", options.store), warn)
    with no_collection():  # of millions of rows, which would take longer than all the rest
        groups = statistics(store, chosen, options.by)
    by = options.by or "name"
    factors = configured_factors()
    total = together([group.totals for group in groups])
    if options.json:
        entry = {"by": by, "groups": [_object(by, group, factors) for group in groups]}
        entry["total"] = rounded_rates(total, factors)
        print_json(entry)
    elif options.csv:
        _print_csv(by, groups, factors)
    elif groups:
        _print_table(by, groups, total, factors)
        _print_notes(store, options.by, groups)
    else:
        warn("no runs found")
    return 0


def _print_notes(store: Store, by: str | None, groups: list[GroupStatistics]) -> None:
    from jobmeter.analyse.pooling import notes_on_commands
    from jobmeter.store.query.commands import newest_runs

    if by is None:
        for note in notes_on_commands(newest_runs(store, (group.group or "" for group in groups))):
            warn(note)


def _object(by: str, group: GroupStatistics, factors: Factors) -> dict[str, Any]:
    """A group as JSON. The group of the runs without the label has no field for it."""
    from jobmeter.analyse.statistics import rounded_rates

    entry: dict[str, Any] = {} if group.group is None else {by: group.group}
    entry["source"] = group.source
    entry.update(rounded_rates(group.totals, factors))
    for figure, spread in group.spreads.items():
        entry[figure] = {name: round(value, 6) for name, value in spread.items()}
    return entry


def _print_csv(by: str, groups: list[GroupStatistics], factors: Factors) -> None:
    from jobmeter.analyse.statistics import LEVELS, SPREAD

    columns = [*dict.fromkeys((by, "source")), *_RATES, "wall_hours", "core_hours_asked", *_ENERGY]
    spreads = [(figure, level) for figure in SPREAD for level in LEVELS]
    writer = CsvWriter(data_output())
    writer.writerow([*columns, *(f"{figure}_{level}" for figure, level in spreads)])
    for group in groups:
        entry = _object(by, group, factors)
        cells = [entry.get(column, "") for column in columns]
        writer.writerow([*cells, *(entry.get(figure, {}).get(level, "") for figure, level in spreads)])


def _print_table(by: str, groups: list[GroupStatistics], total: GroupTotals, factors: Factors) -> None:
    """Print one line for each group if all quantiles of a figure fit side by side, else one line for each quantile."""
    from jobmeter.cli.shared.tables import print_table, printable_cells, terminal
    from jobmeter.report.stats_table import flat_table, tall_table
    from jobmeter.report.table_layout import lay_out

    table = flat_table(by, groups, total, factors)
    console = terminal()
    if console is not None and lay_out(table.columns, printable_cells(table.rows), console.width).left_out:
        table = tall_table(by, groups, total, factors)
    print_table(table.columns, table.rows, has_total=table.has_total)
    sources = sorted({group.source for group in groups})
    if len(sources) > 1:
        warn(f"these runs were measured by different tools; only the total adds their figures up: {', '.join(sources)}")
