"""`jobmeter compare`: two runs, or two groups of runs, side by side."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.filters import add_store_option, named_runs
from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import warn
from jobmeter.errors import UsageError
from jobmeter.model import Status
from jobmeter.settings import resolve
from jobmeter.units import text

if TYPE_CHECKING:
    from jobmeter.analyse.compare import Difference
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.store import Selection, Store


def main(arguments: list[str]) -> int:
    if any(word.partition("=")[0] == "--container-overhead" for word in arguments):
        from jobmeter.cli import compare_container

        return compare_container.main(arguments)
    parser = Parser(
        "compare",
        "Show what B used compared with A. Each is a run, several separated by commas, or a group: name=GLOB, "
        "label.KEY=VALUE, or both. Of a group, the runs that completed are compared.",
    )
    parser.add_argument("a", metavar="A", help="what to compare with")
    parser.add_argument("b", metavar="B", help="what to compare")
    percent = option_type("--threshold", _percent)
    parser.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=percent,
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
    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    a, b = _runs(store, options.a), _runs(store, options.b)
    differences = compare(a, b, options.threshold)
    if options.json:
        comparison = {
            "a": {"of": options.a, "runs": len(a)},
            "b": {"of": options.b, "runs": len(b)},
            "measures": [difference.as_json() for difference in differences],
        }
        print(json.dumps(comparison, indent=2))
    elif differences:
        print_differences(f"A: {options.a}, {_count(a)}", f"B: {options.b}, {_count(b)}", differences)
    else:
        warn("no figure was measured in both")
    return 0


def _percent(words: str) -> float:
    try:
        share = float(words.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise UsageError(f"{words!r} is not a percentage")
    return share


def _runs(store: Store, words: str) -> list[StoredRun]:
    """The runs that one side names."""
    parts = [part.strip() for part in words.split(",") if part.strip()]
    conditions = [part for part in parts if part.startswith(("name=", "label."))]
    if not parts or (conditions and len(conditions) < len(parts)):
        raise UsageError(f"{words!r}: name runs, or a group as name=GLOB or label.KEY=VALUE, not both")
    if not conditions:
        return named_runs(store, parts)
    rows = list(store.runs(_group(conditions)))
    completed = [row for row in rows if row["status"] == Status.COMPLETED]
    if not completed:
        raise UsageError(f"{words!r}: no completed run" if rows else f"{words!r}: no run")
    if len(completed) < len(rows):
        warn(f"{words}: {len(rows) - len(completed)} of {len(rows)} runs did not complete and are left out")
    return completed


def _group(conditions: list[str]) -> Selection:
    from jobmeter.store import Selection

    names, labels = [], {}
    for condition in conditions:
        key, separator, value = condition.partition("=")
        if not separator:
            raise UsageError(f"{condition!r} is not label.KEY=VALUE")
        if key == "name":
            names.append(value)
        else:
            labels[key.removeprefix("label.")] = value
    return Selection(names=names, labels=labels)


def _count(rows: list[Any]) -> str:
    return "1 run" if len(rows) == 1 else f"{len(rows):,} runs"


def print_differences(a: str, b: str, differences: list[Difference]) -> None:
    from rich.console import Console
    from rich.table import Table

    from jobmeter.analyse.compare import in_words

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for heading in ("A", "B", "difference", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for difference in differences:
        unit = difference.measure.unit
        sign = "+" if difference.difference > 0 else ""
        ratio = "" if difference.ratio is None else f"{difference.ratio:.3g}"
        cells = (text(difference.a, unit), text(difference.b, unit), sign + text(difference.difference, unit), ratio)
        table.add_row(difference.measure.name, *cells)
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, highlight=False, markup=False)
    console.print(f"{a}\n{b}\n")
    console.print(table)
    console.print()
    for difference in differences:
        style = {"regression": "red", "improvement": "green"}.get(difference.verdict)
        console.print(in_words(difference), style=style, soft_wrap=True)
