"""Converts a run record to a row of the index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.byte_text import as_represented
from jobmeter.model import Quality, Requirement, Status
from jobmeter.record.read import source_of
from jobmeter.store.index.quick_json import column_text
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.index.unfinished import timestamp
from jobmeter.times import utc

if TYPE_CHECKING:
    from jobmeter.record.types import Figure, MetricRecord, Record, WorkflowPart

COLUMNS = tuple(str(column.name) for column in job_metadata.columns if column.name != "number")

_STATUSES = {status.value: status.value for status in Status}
_LIKE_UTC = len("2026-01-31T12:00:00.000Z")
_FIGURES = {figure.name: position for position, figure in enumerate(HEADLINE)}
_AT_LEAST = Quality.AT_LEAST.value
_WORKFLOW_JOB = ("job_id", "step", "attempt", "fingerprint")
_NO_WORKFLOW = (None, None, None)


def row_of(record: Record, file: int, offset: int, line: int) -> tuple[Any, ...]:
    """The values of `COLUMNS` for a record that `check_indexed` passed. Not all of them need be `storable`."""
    outcome, usage = record["outcome"], record["usage"]
    requirement = record.get("requirement") or {}
    host = record.get("host")
    labels, enforced = record.get("labels"), record.get("enforced")
    cpu, memory = usage.get("cpu_seconds"), usage.get("memory_peak_bytes")
    figures, at_least = _figures(usage)
    return (
        record["id"],
        record["name"],
        _STATUSES[outcome["status"]],
        outcome.get("exit_code"),
        outcome.get("signal"),
        _time(record.get("started")) or "",
        _time(record.get("ended")),
        record.get("wall_seconds"),
        *map(requirement.get, Requirement._fields),
        *figures,
        source_of(record),
        *(workflow_columns(record["workflow"]) if "workflow" in record else _NO_WORKFLOW),
        column_text(labels) if labels else "{}",
        _metrics_text(record["metrics"]) if "metrics" in record else None,
        record.get("user"),
        host.get("name") if type(host) is dict else host,
        record.get("cwd"),
        column_text(record.get("command") or []),
        cpu.get("quality") if cpu else None,
        memory.get("quality") if memory else None,
        at_least,
        json.dumps(enforced) if type(enforced) is list else None,
        file,
        offset,
        line,
    )


def _figures(usage: dict[str, Figure]) -> tuple[list[Any], str | None]:
    """The values of the headline figures, and the names of those that may have been higher, as JSON."""
    values: list[Any] = [None] * len(_FIGURES)
    at_least = []
    for name, figure in usage.items():
        position = _FIGURES.get(name)
        if position is None:
            continue  # a figure of a newer version
        values[position] = figure["value"]
        if figure.get("quality") == _AT_LEAST:
            at_least.append(name)
    return values, '["' + '", "'.join(at_least) + '"]' if at_least else None


def workflow_columns(workflow: WorkflowPart) -> tuple[Any, ...]:
    """The number of the workflow's run, the id of the workflow, and which of its jobs this is, as JSON."""
    if "run_id" not in workflow or "id" not in workflow:
        return _NO_WORKFLOW
    return workflow["run_id"], workflow["id"], json.dumps({name: workflow.get(name) for name in _WORKFLOW_JOB})


def _metrics_text(metrics: dict[str, MetricRecord]) -> str:
    """The last value of each metric, as JSON."""
    return column_text({name: metric["value"] for name, metric in metrics.items()})


def storable(value: Any) -> Any:
    """The value of a column, converted if SQL cannot store it."""
    if type(value) is str:
        return as_represented(value)
    if type(value) is int and abs(value) >= 2**63:
        return float(value)
    return value if value is None or type(value) in (int, float) else str(value)


def _time(value: Any) -> str | None:
    """The time in the form that the index uses, which sorts by time."""
    if value is None or (type(value) is str and len(value) == _LIKE_UTC and value[-1] == "Z" and value[10] == "T"):
        return value
    seconds = timestamp(value)
    return None if seconds is None else utc(seconds)
