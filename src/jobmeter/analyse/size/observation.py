"""What stored runs say about the need of a resource: needs, and lower bounds of needs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

from jobmeter.analyse.check import job_of
from jobmeter.analyse.overuse import reached_limit
from jobmeter.analyse.resource import MEMORY, Resource
from jobmeter.analyse.size.need import Features, Need
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import Quality, Status

ROOM = {Quality.EXACT.value: 1.03, Quality.SAMPLED.value: 1.1, Quality.AT_LEAST.value: 1.25}
"""Factor on a memory figure, by its quality: a limit also counts kernel memory that no process shows; a sample may have
missed a peak; of an incomplete figure, much may be missing."""
BEYOND_LIMIT = 1.5
"""Factor on the limit that a run met, if no run is known to have completed with more."""
BEYOND_LIMIT_UNKNOWN = 2.0
"""The same if no run ever completed."""
COMPLETE, LIMIT, CUT = "complete", "limit", "cut"
"""How a run ended: it completed; it met a limit that it requested; it ended early for another reason."""
BYTES, READ_BYTES = "bytes", "read_bytes"
"""Features: the size of the inputs, from a label of the run, and the bytes that it was measured to read."""


class Observation(NamedTuple):
    value: float  # above 0: what it used, or the limit that it met
    ending: str  # unless COMPLETE, the value is a lower bound
    name: str
    room: float  # factor for what the figure may have missed
    features: Features
    seconds: float

    @property
    def amount(self) -> float:
        return self.value * self.room


def observe(rows: Sequence[StoredRun], resource: Resource, *, exactly: bool = False) -> list[Observation]:
    """The observations of the runs, in the order given; `exactly` takes the figures as they are."""
    observations = (observation(row, resource, exactly=exactly) for row in rows)
    return [one for one in observations if one is not None]


def needs(observations: Sequence[Observation], resource: Resource) -> list[Need]:
    """The needs that follow from the observations.

    Every completed run counts. A run that met a limit counts, with more than the limit, if no completed run used more
    than the limit. A run that ended early counts if it used more than every completed run.
    """
    most = max((one.value for one in observations if one.ending == COMPLETE), default=0.0)
    counted = []
    for one in observations:
        amount = one.amount
        if one.ending == LIMIT:
            amount *= BEYOND_LIMIT
        if one.ending == COMPLETE or one.value > most or (one.ending == LIMIT and one.value >= most):
            counted.append(Need(amount, one.features, one.seconds if resource is MEMORY else 1.0))
    return counted


def features_of(row: StoredRun) -> dict[str, float]:
    """The features of a run: its numeric labels, and the bytes that it read."""
    features = {name: number for name, text in row.get("labels", {}).items() if (number := _number(text)) is not None}
    for name in (*_NOT_FEATURES, *_VERSION_LABELS):
        features.pop(name, None)
    if (read := row.get(READ_BYTES)) is not None:
        features.setdefault(READ_BYTES, float(read))
    return features


_NOT_FEATURES = ("task_id", "attempt", "job_id", "array_task_id")
"""Labels by importers whose numbers only count runs."""


def _number(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def observation(row: StoredRun, resource: Resource, *, exactly: bool = False) -> Observation | None:
    """What a run says about the need of a resource; None if it is not known what the run used."""
    used = row.get(resource.used) or 0.0
    # A run that met a limit used all of it, whatever was sampled. The time that it then took to end does not count.
    value = row[resource.requested] if reached_limit(row, resource) else used
    value = max(value, used) if resource is MEMORY else value
    if not value > 0:
        return None
    room = 1.0
    if resource is MEMORY and not exactly:
        room = ROOM.get(str(row.get(MEMORY.quality)), ROOM["sampled"])
    seconds = max(row.get("wall_seconds") or 0.0, _SHORTEST)
    return Observation(float(value), _ending(row, resource), str(row["name"]), room, features_of(row), seconds)


_SHORTEST = 0.001


def _ending(row: StoredRun, resource: Resource) -> str:
    if row.get("status") == Status.COMPLETED:
        return COMPLETE
    return LIMIT if row.get("status") == resource.limit_status else CUT


def requested_today(rows: Sequence[StoredRun], resource: Resource) -> float | None:
    """What the newest run requested in its first attempt: a retry may have requested more than the spec does."""
    if not rows:
        return None
    key = job_of(rows[0]).key
    attempts = [row for row in rows if job_of(row).key == key] if key[0] else rows[:1]
    if attempt_of(rows[0]) > 1 and not key[0]:
        attempts = rows  # it is not known which task this is a retry of: take the newest first attempt
    requested: float | None = min(attempts, key=attempt_of).get(resource.requested)
    return requested


def attempt_of(row: StoredRun) -> int:
    """The number of the attempt that a run was: from the label of an importer, else from its job of a workflow."""
    number = _number(row.get("labels", {}).get("attempt"))
    return job_of(row).attempt if number is None else int(number)


def of_newest_version(rows: Sequence[StoredRun]) -> list[StoredRun]:
    """Leave out runs before the newest version, if several runs of that version completed. Rows are newest first."""
    completed = [version_of(row) for row in rows if row.get("status") == Status.COMPLETED]
    newest = completed[0] if completed else ()
    if not newest or completed.count(newest) < SEVERAL:
        return list(rows)
    oldest = max(place for place, row in enumerate(rows) if version_of(row) == newest)
    return list(rows[: oldest + 1])


def version_of(row: StoredRun) -> tuple[str, ...]:
    """The version of the program of a run, from its labels; empty if not known."""
    labels = row.get("labels", {})
    return tuple(f"{name}={labels[name]}" for name in _VERSION_LABELS if name in labels)


SEVERAL = 3
_VERSION_LABELS = ("version", "container")


def without_superseded(rows: Sequence[StoredRun]) -> list[StoredRun]:
    """Leave out attempts that met a limit if another attempt at the task completed: that one shows what was needed."""
    if not any(row.get("status") in _MET for row in rows):
        return list(rows)
    completed = {task for row in rows if row.get("status") == Status.COMPLETED and (task := _task_of(row)) is not None}
    return [row for row in rows if row.get("status") not in _MET or _task_of(row) not in completed]


_MET = (Status.OOM, Status.TIMEOUT)


def _task_of(row: StoredRun) -> object:
    """A key that all attempts at one task have in common; None if it is not known."""
    labels = row.get("labels")
    if labels and (task := labels.get("task")) is not None:
        return row["name"], task
    return job_of(row).key if row.get("workflow") else None
