"""`jobmeter show`: one run at a glance."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jobmeter.cli.shared.factors import configured_factors
from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import print_lines, warn
from jobmeter.cli.shared.tables import terminal
from jobmeter.settings import resolve
from jobmeter.terminal import printable

if TYPE_CHECKING:
    from jobmeter.cli.shared.console import TextConsole


def main(arguments: list[str]) -> int:
    parser = Parser("show", "Show one run: how it ended, what it used beside what it requested, and what stands out.")
    parser.add_argument(
        "run", nargs="?", default="last", metavar="RUN", help="id, unique prefix, name or `last` (the default)"
    )
    parser.add_argument("--json", action="store_true", help="print the run record, with its findings")
    add_store_option(parser)
    options = parser.parse_args(arguments)

    from jobmeter.analyse.timeline import samples
    from jobmeter.record.build import as_json
    from jobmeter.report.record import with_findings
    from jobmeter.report.show import details
    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    run_id = store.resolve(options.run)
    journal = store.journal(run_id)
    for problem in journal.problems:
        warn(problem)
    record = store.record_of(journal)
    if options.json:
        sys.stdout.write(f"{as_json(with_findings(record, journal.windows))}\n")
        return 0
    course = samples((window.seconds, window.cells) for window in journal.windows)
    files = [("journal", store.path(run_id)), ("index", store.index_path)]
    there = [(name, path) for name, path in files if os.path.exists(path)]
    console = terminal()
    if console is None:
        print_lines(details(record, course, there, factors=configured_factors()))
    else:
        _print_styled(console, details(record, course, there, console.width, configured_factors()))
    return 0


def _print_styled(console: TextConsole, lines: list[str]) -> None:
    """Print the lines on a terminal, problems in red and curves in cyan."""
    from rich.text import Text

    is_problem = False
    for line in lines:
        is_problem = line.startswith("! ") or (is_problem and line.startswith("  "))
        style = "red" if is_problem else "cyan" if any(letter in line for letter in "▂▃▄▅▆▇█") else ""
        console.print(Text(printable(line), style=style), soft_wrap=True)
