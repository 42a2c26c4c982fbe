"""Whether runs can be pooled: their figures must be of one tool, and a name must stand for one command."""

from __future__ import annotations

from collections.abc import Iterable

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import OWN_SOURCE


def sources_of(runs: Iterable[StoredRun]) -> list[str]:
    """The tools that made the figures of these runs."""
    return sorted({str(run["source"]) for run in runs})


def notes_on_commands(runs: Iterable[StoredRun]) -> list[str]:
    """A line for each name under which different commands ran: their figures are not those of one job.

    Jobs of workflows and runs that other tools recorded are left out: there, one name is meant for many commands.
    """
    commands: dict[str, set[str]] = {}
    for run in runs:
        if run["source"] == OWN_SOURCE and "workflow" not in run:
            commands.setdefault(str(run["name"]), set()).add(repr(run.get("command")))
    return [
        f"{len(each):,} different commands are called {name!r}; use `jobmeter run --name` to distinguish them"
        for name, each in commands.items()
        if len(each) > 1
    ]
