"""`jobmeter gc`: remove old runs and cluster reports from the store, or only the time series of runs."""

from __future__ import annotations

import time

from jobmeter.cli.shared.options import Parser, add_store_option, option_type
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.cli.shared.progress import progress
from jobmeter.settings import positive_seconds, resolve
from jobmeter.units import text


def main(arguments: list[str]) -> int:
    parser = Parser(
        "gc",
        "Remove old runs from the store, and what `jobmeter cluster` stored there. What still runs, or is still "
        "watched, is not removed.",
    )
    add = parser.add_argument
    age = option_type("--older-than", positive_seconds)
    add(
        "--older-than",
        metavar="TIME",
        type=age,
        required=True,
        help="remove what started longer ago, for example 90d",
    )
    add(
        "--keep-summary",
        action="store_true",
        help="keep the records of runs and all of clusters, and remove only the time series of runs",
    )
    add("--dry-run", action="store_true", help="only show what would be removed")
    add("--json", action="store_true", help="print the numbers of runs, cluster reports and bytes as an object")
    add_store_option(parser)
    options = parser.parse_args(arguments)

    from jobmeter.cluster.pruning import PrunedSamples, prune_samples
    from jobmeter.store import Selection, open_store

    store = open_store(resolve("store", options.store), warn)
    before = time.time() - options.older_than
    with progress() as show:
        pruned = store.prune(
            Selection(until=before),
            keep_summary=options.keep_summary,
            dry_run=options.dry_run,
            progress=lambda done, total: show(f"{done:,} of {total:,} files"),
        )
    samples = PrunedSamples(0, 0)
    if not options.keep_summary:  # the report of a cluster is made from its samples
        samples = prune_samples(store.location, before, dry_run=options.dry_run)
    if options.json:
        print_json(
            {"runs": pruned.runs, "cluster_reports": samples.files, "bytes": pruned.bytes + samples.bytes}, indent=None
        )
        return 0
    verb = "would free" if options.dry_run else "freed"
    of = _number(pruned.runs, "run")
    if options.keep_summary:
        of = f"the time series of {of}"
    elif samples.files:
        of = f"{of} and {_number(samples.files, 'cluster report')}"
    about = "about " if options.dry_run else ""
    warn(f"{of}: {verb} {about}{text(pruned.bytes + samples.bytes, 'bytes')}")
    return 0


def _number(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
