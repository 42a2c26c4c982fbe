"""A stored run as a row of the index: the input of the rules, of `size` and of the commands that list runs."""

from __future__ import annotations

from collections.abc import Mapping

from jobmeter.light_typing import TYPE_CHECKING, Any
from jobmeter.model import Quality

if TYPE_CHECKING:
    from jobmeter.record.types import Figure, Record

StoredRun = Mapping[str, Any]
"""The fields of a run by name (`ls --fields all`); unknown fields are absent."""


def of_record(record: Record) -> StoredRun:
    """The figures, requests and limits of a record, under the names that they have in the index."""
    usage, outcome = record["usage"], record["outcome"]
    run = {
        "id": record["id"],
        "name": record["name"],
        "status": outcome["status"],
        "exit_code": outcome.get("exit_code"),
        "signal": outcome.get("signal"),
        "wall_seconds": record.get("wall_seconds"),
        **{name: figure["value"] for name, figure in usage.items()},
        **{f"requirement_{name}": amount for name, amount in (record.get("requirement") or {}).items()},
        "cpu_quality": _quality(usage.get("cpu_seconds")),
        "memory_quality": _quality(usage.get("memory_peak_bytes")),
        "at_least": [name for name, figure in usage.items() if figure.get("quality") == Quality.AT_LEAST.value] or None,
        "enforced": record.get("enforced"),
    }
    return {name: value for name, value in run.items() if value is not None}


def _quality(figure: Figure | None) -> str | None:
    return figure["quality"] if figure is not None else None
