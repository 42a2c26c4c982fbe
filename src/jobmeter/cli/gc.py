"""`jobmeter gc`: remove old runs from the store, or only their time series."""

from __future__ import annotations

import time

from jobmeter.cli.shared.options import Parser, add_store_option, option_type
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.cli.shared.progress import progress
from jobmeter.settings import positive_seconds, resolve
from jobmeter.units import text


def main(arguments: list[str]) -> int:
    parser = Parser("gc", "Remove old runs from the store. Jobs that still run are not removed.")
    add = parser.add_argument
    age = option_type("--older-than", positive_seconds)
    add(
        "--older-than",
        metavar="TIME",
        type=age,
        required=True,
        help="remove runs that started longer ago, for example 90d",
    )
    add("--keep-summary", action="store_true", help="keep their records, and remove only their time series")
    add("--dry-run", action="store_true", help="only show what would be removed")
    add("--json", action="store_true", help="print the number of runs and bytes as an object")
    add_store_option(parser)
    options = parser.parse_args(arguments)

    from jobmeter.store import Selection, open_store

    store = open_store(resolve("store", options.store), warn)
    old = Selection(until=time.time() - options.older_than)
    with progress() as show:
        pruned = store.prune(
            old,
            keep_summary=options.keep_summary,
            dry_run=options.dry_run,
            progress=lambda done, total: show(f"{done:,} of {total:,} files"),
        )
    if options.json:
        print_json(pruned._asdict(), indent=None)
        return 0
    verb = "would free" if options.dry_run else "freed"
    runs = "1 run" if pruned.runs == 1 else f"{pruned.runs:,} runs"
    of = f"the time series of {runs}" if options.keep_summary else runs
    about = "about " if options.dry_run else ""
    warn(f"{of}: {verb} {about}{text(pruned.bytes, 'bytes')}")
    return 0
