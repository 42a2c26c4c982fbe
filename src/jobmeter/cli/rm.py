"""`jobmeter rm`: remove runs from the store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jobmeter.cli.shared.filters import FILTERS, add_filter_options, selection
from jobmeter.cli.shared.options import Parser, add_store_option
from jobmeter.cli.shared.output import print_to_stderr, warn
from jobmeter.cli.shared.progress import progress
from jobmeter.errors import UsageError
from jobmeter.model import Status
from jobmeter.settings import resolve

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.store import Store

_LISTED = 10
_AT_ONCE = 1000


def main(arguments: list[str]) -> int:
    options = _parse(arguments)

    from jobmeter.store import open_store

    store = open_store(resolve("store", options.store), warn)
    runs = _chosen(store, options)
    if not runs:
        warn("no run matches: nothing was removed")
        return 0
    _list(runs)
    count = "1 run" if len(runs) == 1 else f"{len(runs):,} runs"
    if options.dry_run:
        warn(f"{count} would be removed")
        return 0
    if not options.yes and not _confirmed(count):
        warn("nothing was removed")
        return 1
    _remove(store, [run["id"] for run in runs])
    warn(f"removed {count}")
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("rm", "Remove runs from the store, with all their figures. It lists them and asks before it does.")
    add = parser.add_argument
    add("runs", nargs="*", metavar="RUN", help="id, unique prefix, name (its newest run), `last`, or a glob: all runs")
    add_filter_options(parser)
    add("-y", "--yes", action="store_true", help="do not ask; needed where stdin is no terminal")
    add("--dry-run", action="store_true", help="only show what would be removed")
    add_store_option(parser)
    return parser.parse_args(arguments)


def _chosen(store: Store, options: argparse.Namespace) -> list[StoredRun]:
    """The runs named or those that the filters select, each once. All are found before the first is removed."""
    filtered = any(getattr(options, name) for name in FILTERS)
    if bool(options.runs) == filtered:
        raise UsageError(
            "name runs or filter them, not both"
            if filtered
            else "name the runs to remove, or filter them: jobmeter rm RUN, jobmeter rm --name 'test*'"
        )
    if not filtered:
        return _named(store, options.runs)
    rows = list(store.runs(selection(options)))
    running = sum(row["status"] == Status.RUNNING.value for row in rows)
    if running:
        warn(f"{running:,} of them still run{'s' * (running == 1)} and stay{'s' * (running == 1)}")
    return [row for row in rows if row["status"] != Status.RUNNING.value]


def _named(store: Store, names: Iterable[str]) -> list[StoredRun]:
    """The rows of the named runs, each once; a glob means all runs it matches. Raises UsageError if one is unknown."""
    from jobmeter.store import Selection

    rows: dict[str, StoredRun] = {}
    for name in names:
        if any(letter in name for letter in "*?["):
            matching = list(store.runs(Selection(names=[name])))
            if not matching:
                raise UsageError(f"no run is called {name!r}. `jobmeter ls` lists runs.")
        else:
            matching = list(store.runs(Selection(where=f'id = "{store.resolve(name)}"')))
        rows.update((row["id"], row) for row in matching)
    return list(rows.values())


def _list(runs: list[StoredRun]) -> None:
    """List the runs that will be removed."""
    width = max(len(row["status"]) for row in runs[:_LISTED])
    lines = [f"  {row['id']}  {row.get('started', '')[:19]}  {row['status']:<{width}}  {row['name']}" for row in runs]
    more = [f"  … and {len(lines) - _LISTED:,} more"] if len(lines) > _LISTED else []
    print_to_stderr([*lines[:_LISTED], *more])


def _confirmed(count: str) -> bool:
    """Ask the user whether to remove the runs. Raises UsageError if there is no terminal to ask on."""
    if not sys.stdin.isatty() or sys.stderr is None or not sys.stderr.isatty():
        raise UsageError(f"nothing was removed: there is no terminal to ask on. To remove {count}: jobmeter rm --yes …")
    sys.stderr.write(f"Remove {count}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _remove(store: Store, ids: list[str]) -> None:
    with progress() as show:
        for at in range(0, len(ids), _AT_ONCE):
            store.remove_all(ids[at : at + _AT_ONCE])
            show(f"removed {min(at + _AT_ONCE, len(ids)):,} of {len(ids):,} runs")
