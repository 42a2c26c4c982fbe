"""Reads parts of a run record by names that are known only when the program runs."""

from __future__ import annotations

from collections.abc import Mapping

from jobmeter.light_typing import TYPE_CHECKING, Any, cast
from jobmeter.model import OWN_SOURCE

if TYPE_CHECKING:
    from jobmeter.record.types import Figure, Record, RunIdentity


def identity_of(record: Record) -> RunIdentity:
    """The part that was known when the run began: what the header of its journal holds."""
    from jobmeter.record.types import RunIdentity

    names = [name for name in RunIdentity.__annotations__ if name in record]
    return cast("RunIdentity", {name: cast("dict[str, Any]", record)[name] for name in names})


def source_of(record: Record) -> str:
    """The tool that made the figures: jobmeter, or the one that the run was imported from."""
    provenance: Any = record.get("provenance")
    imported = provenance.get("imported") if isinstance(provenance, dict) else None
    tool = imported.get("from") if isinstance(imported, dict) else None
    return tool if isinstance(tool, str) else OWN_SOURCE


def figures(record: Record) -> Mapping[str, Figure]:
    """The headline figures by name."""
    return cast("Mapping[str, Figure]", record["usage"])


def figure_value(record: Record, name: str) -> float | None:
    """The value of a headline figure; None when it was not measured."""
    figure = figures(record).get(name)
    return None if figure is None else figure["value"]


def requested(record: Record) -> Mapping[str, float]:
    """What was requested, by the name of the resource."""
    return cast("Mapping[str, float]", record["requirement"])


def measured(record: Record, key: str) -> Mapping[str, Any]:
    """The summary of one measurement, of whichever kind; empty when it was not measured."""
    return cast("Mapping[str, Mapping[str, Any]]", record["measurements"]).get(key, {})
