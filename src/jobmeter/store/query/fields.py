"""The fields of a run that can be shown, filtered and sorted by, with their units."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.errors import UsageError
from jobmeter.suggestion import suggest
from jobmeter.units import without_unit


class Field(NamedTuple):
    unit: str  # bytes, seconds, percent, count; text, time, or json: a list or an object
    column: str  # its name in the index


REQUIREMENTS = {"cpus": "count", "memory_bytes": "bytes", "runtime_seconds": "seconds", "gpus": "count"}

FIELDS = {
    "id": Field("text", "job_id"),
    "name": Field("text", "job_name"),
    "workflow": Field("text", "workflow_id"),
    **{
        name: Field(unit, name)
        for name, unit in (
            ("status", "text"),
            ("exit_code", "count"),
            ("signal", "count"),
            ("started", "time"),
            ("ended", "time"),
            ("wall_seconds", "seconds"),
            *((figure.name, figure.unit) for figure in HEADLINE),
            *((f"requirement_{name}", unit) for name, unit in REQUIREMENTS.items()),
            ("workflow_run", "count"),
            ("workflow_job", "json"),
            ("labels", "json"),
            ("metrics", "json"),
            ("user", "text"),
            ("host", "text"),
            ("cwd", "text"),
            ("command", "json"),
            ("cpu_quality", "text"),
            ("memory_quality", "text"),
            ("at_least", "json"),
            ("enforced", "json"),
            ("source", "text"),
        )
    },
}


_FULL_NAMES = {without_unit(name): name for name in FIELDS}
"""Fields by their names in headings, which have no unit: `memory_peak` is `memory_peak_bytes`."""


def full_name(name: str) -> str:
    """The full name of a field that is named with or without its unit.

    Raises UsageError, which suggests the nearest name, if there is no such field.
    """
    full = name if name in FIELDS else _FULL_NAMES.get(name)
    if full is None:
        raise UsageError(f"there is no field {name!r}. {suggest(name, _FULL_NAMES)}")
    return full


def check_field(name: str) -> Field:
    """The unit and the column of the field of this name. Raises UsageError as `full_name` does."""
    return FIELDS[full_name(name)]
