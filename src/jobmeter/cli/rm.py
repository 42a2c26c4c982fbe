"""`jobmeter rm`: remove runs from the store."""

from __future__ import annotations

from jobmeter.cli.shared.filters import add_store_option
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.settings import resolve


def main(arguments: list[str]) -> int:
    parser = Parser("rm", "Remove runs from the store, with all their figures.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="id, unique prefix, name (its newest run) or `last`")
    add_store_option(parser)
    options = parser.parse_args(arguments)

    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    # All are resolved before the first is removed: `rm last last` is one run, and a mistyped name removes nothing.
    ids = list(dict.fromkeys(store.resolve(name) for name in options.runs))
    store.remove_all(ids)
    for run_id in ids:
        warn(f"removed {run_id}")
    return 0
