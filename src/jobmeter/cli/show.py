"""`jobmeter show`: one run at a glance."""

from __future__ import annotations

import json
import os
import sys

from jobmeter.cli.shared.filters import add_store_option
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.settings import resolve


def main(arguments: list[str]) -> int:
    parser = Parser("show", "Show one run: how it ended, what it used beside what it requested, and what stands out.")
    parser.add_argument(
        "run", nargs="?", default="last", metavar="RUN", help="id, unique prefix, name or `last` (the default)"
    )
    parser.add_argument("--json", action="store_true", help="print the run record")
    add_store_option(parser)
    options = parser.parse_args(arguments)

    from jobmeter.analyse.timeline import samples
    from jobmeter.report.show import details
    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    run_id = store.resolve(options.run)
    journal = store.journal(run_id)
    for problem in journal.problems:
        warn(problem)
    record = store.record_of(journal)
    if options.json:
        print(json.dumps(record, indent=2))
        return 0
    course = samples((window.seconds, window.cells) for window in journal.windows)
    files = [("journal", store.path(run_id)), ("index", store.index_path)]
    lines = details(record, course, [(name, path) for name, path in files if os.path.exists(path)])
    if sys.stdout.isatty():
        _print_styled(lines)
    else:
        print("\n".join(lines))
    return 0


def _print_styled(lines: list[str]) -> None:
    """On a terminal problems are red, and no line wraps."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        style = "red" if line.startswith("! ") else "cyan" if any(letter in line for letter in "▂▃▄▅▆▇█") else ""
        console.print(Text(line, style=style), no_wrap=True, overflow="ellipsis", crop=True)
