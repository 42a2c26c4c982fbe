"""Finds the runs that users name: one by one, or as a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jobmeter.analyse.stored_run import StoredRun
from jobmeter.errors import UsageError
from jobmeter.model import Status
from jobmeter.store.query.selection import Selection
from jobmeter.store.store import Store


def named_runs(store: Store, names: Iterable[str]) -> list[StoredRun]:
    """The rows of the runs named by id, prefix, name or `last`, each once. Raises UsageError if one is unknown."""
    ids = dict.fromkeys(store.resolve(name) for name in names)
    return [row for run_id in ids for row in store.runs(Selection(where=f'id = "{run_id}"'))]


def runs_of(store: Store, words: str, warn: Callable[[str], None]) -> list[StoredRun]:
    """The runs that one side of a comparison names: single runs, or those runs of a group that completed.

    Raises UsageError if there are none.
    """
    group = group_of(words)
    if group is None:
        return named_runs(store, _parts(words))
    rows = list(store.runs(group))
    completed = [row for row in rows if row["status"] == Status.COMPLETED]
    if not completed:
        raise UsageError(f"{words!r}: no completed run" if rows else f"{words!r}: no run")
    if len(completed) < len(rows):
        warn(f"{words}: {len(rows) - len(completed)} of {len(rows)} runs did not complete and are left out")
    return completed


def group_of(words: str) -> Selection | None:
    """The group that `words` name, as `name=GLOB` or `label.KEY=VALUE,source=TOOL`; None if they name runs."""
    parts = _parts(words)
    conditions = [part for part in parts if part.startswith(("name=", "source=", "label."))]
    if not parts or (conditions and len(conditions) < len(parts)):
        raise UsageError(f"{words!r}: name runs, or a group as name=GLOB, source=TOOL or label.KEY=VALUE, not both")
    return _group(conditions) if conditions else None


def _parts(words: str) -> list[str]:
    return [part.strip() for part in words.split(",") if part.strip()]


def _group(conditions: list[str]) -> Selection:
    names, sources, labels = [], [], {}
    for condition in conditions:
        key, separator, value = condition.partition("=")
        if not separator:
            raise UsageError(f"{condition!r} is not label.KEY=VALUE")
        if key == "name":
            names.append(value)
        elif key == "source":
            sources.append(value)
        else:
            labels[key.removeprefix("label.")] = value
    return Selection(names=names, sources=sources, labels=labels)
