"""`jobmeter label`: add, change or remove labels of a run."""

from __future__ import annotations

from jobmeter.cli.shared.options import Parser, add_store_option, option_type
from jobmeter.cli.shared.output import print_json, print_lines, warn
from jobmeter.settings import label, resolve


def main(arguments: list[str]) -> int:
    parser = Parser("label", "Add labels to a run. KEY= without a value removes a label.")
    parser.add_argument("run", metavar="RUN", help="id, unique prefix, name (its newest run) or `last`")
    kind = option_type("label", label)
    parser.add_argument(
        "labels", nargs="*", metavar="KEY=VALUE", type=kind, help="without any, print the labels it has"
    )
    parser.add_argument("--json", action="store_true", help="print the labels as an object")
    add_store_option(parser)
    options = parser.parse_args(arguments)

    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    run_id = store.resolve(options.run)
    if options.labels:
        store.relabel(run_id, {key: value or None for key, value in options.labels})
    labels = store.labels(run_id)
    if options.json:
        print_json(labels, indent=None)
    else:
        print_lines(f"{key}={value}" for key, value in labels.items())
    return 0
