"""`jobmeter compare`: two runs, or two groups of runs, side by side."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.options import Parser, add_store_option, fraction, option_type
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.errors import UsageError
from jobmeter.settings import resolve
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.analyse.compare import Difference
    from jobmeter.analyse.stored_run import StoredRun


def main(arguments: list[str]) -> int:
    if any(word.partition("=")[0] == "--container-overhead" for word in arguments):
        from jobmeter.cli import compare_container

        return compare_container.main(arguments)
    parser = Parser(
        "compare",
        "Show what B used compared with A. Each is a run, several separated by commas, or a group: name=GLOB, "
        "source=TOOL, label.KEY=VALUE, or several of these. Of a group, the runs that completed are compared.",
    )
    parser.add_argument("a", metavar="A", help="the reference: a run or a group")
    parser.add_argument("b", metavar="B", help="the run or group to compare with it")
    parser.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=option_type("--threshold", fraction),
        default=0.05,
        help="a smaller change is no regression (default 5)",
    )
    parser.add_argument("--json", action="store_true", help="print an object")
    parser.add_argument(
        "--container-overhead",
        metavar="IMAGE",
        help="instead of A and B: run a command bare and in a container, "
        "and show what the container costs. See `jobmeter compare --container-overhead IMAGE --help`",
    )
    add_store_option(parser)
    options = parser.parse_args(arguments)

    from jobmeter.analyse.compare import compare
    from jobmeter.analyse.pooling import sources_of
    from jobmeter.store import open_store
    from jobmeter.store.query.groups import runs_of

    store = open_store(resolve("store", options.store), warn)
    a, b = runs_of(store, options.a, warn), runs_of(store, options.b, warn)
    _refuse_overlap(options, a, b)
    differences = compare(a, b, options.threshold)
    _print_notes(a, b)
    if options.json:
        comparison = {
            "a": {"of": options.a, "runs": len(a), "sources": sources_of(a)},
            "b": {"of": options.b, "runs": len(b), "sources": sources_of(b)},
            "measures": [difference.as_json() for difference in differences],
        }
        print_json(comparison)
    elif differences:
        print_differences(f"A: {options.a}, {_count(a)}", f"B: {options.b}, {_count(b)}", differences)
    else:
        warn("no figure was measured in both")
    return 0


def _refuse_overlap(options: argparse.Namespace, a: list[StoredRun], b: list[StoredRun]) -> None:
    """Raise UsageError if a run is on both sides: its figures would count for both."""
    both = {row["id"] for row in a} & {row["id"] for row in b}
    if both:
        which = f"run {min(both)} is" if len(both) == 1 else f"{len(both):,} runs are"
        raise UsageError(f"{which} in both {options.a!r} and {options.b!r}. Name groups that have no run in common.")


def _print_notes(a: list[StoredRun], b: list[StoredRun]) -> None:
    """Warn of what makes the figures of the two sides less comparable."""
    from jobmeter.analyse.pooling import notes_on_commands, sources_of

    if len(sources_of([*a, *b])) > 1:
        sides = f"A is of {', '.join(sources_of(a))}, B of {', '.join(sources_of(b))}"
        warn(f"these are figures of different tools, which measure in different ways: {sides}")
    for note in dict.fromkeys([*notes_on_commands(a), *notes_on_commands(b)]):
        warn(note)


def _count(rows: list[Any]) -> str:
    return "1 run" if len(rows) == 1 else f"{len(rows):,} runs"


def print_differences(a: str, b: str, differences: list[Difference]) -> None:
    from jobmeter.analyse.compare import in_words
    from jobmeter.cli.shared.sentences import print_sentences
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.table_layout import Column

    columns = [Column("figure", essential=True), *(Column(name, "count", essential=True) for name in "AB")]
    columns += [Column(name, "count") for name in ("difference", "ratio")]
    rows = []
    for difference in differences:
        unit = difference.measure.unit
        sign = "+" if difference.difference > 0 else ""
        ratio = "" if difference.ratio is None else f"{difference.ratio:.3g}"
        amounts = [text(difference.a, unit), text(difference.b, unit), sign + text(difference.difference, unit)]
        rows.append([difference.measure.name, *amounts, ratio])
    print_sentences([a, b, ""])
    print_table(columns, rows)
    print_sentences([""])
    for difference in differences:
        style = {"regression": "red", "improvement": "green"}.get(difference.verdict, "")
        print_sentences([in_words(difference)], style=style)
