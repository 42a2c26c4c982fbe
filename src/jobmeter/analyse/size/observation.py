"""What stored runs say about the need of a resource: needs, and lower bounds of needs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

from jobmeter.analyse.check import job_of
from jobmeter.analyse.overuse import met_limit
from jobmeter.analyse.resource import MEMORY, Resource
from jobmeter.analyse.size.need import Features, Need
from jobmeter.analyse.stored_run import StoredRun
from jobmeter.model import Quality, Status

ROOM = {Quality.EXACT.value: 1.03, Quality.SAMPLED.value: 1.1, Quality.AT_LEAST.value: 1.25}
"""By how far the figure can be trusted: a limit also counts kernel memory that no process shows; a sample may have
missed a peak; of an incomplete figure, much may be missing."""
BEYOND_LIMIT = 1.5
"""Times the limit that a run met, where no run is known to have completed with more."""
BEYOND_LIMIT_UNKNOWN = 2.0
"""The same where no run ever completed."""
COMPLETE, LIMIT, CUT = "complete", "limit", "cut"
"""The run came to its end; it met a limit that it requested; it ended early for another reason."""
BYTES, READ_BYTES = "bytes", "read_bytes"
"""Features: the size of the inputs, which a run is labelled with, and what it was measured to read."""


class Observation(NamedTuple):
    value: float  # above 0: what it used, or the limit that it met
    ending: str  # unless COMPLETE, the value is a lower bound
    name: str
    room: float  # what to multiply it with, for what the figure may have missed
    features: Features
    seconds: float

    @property
    def amount(self) -> float:
        return self.value * self.room


def observe(rows: Sequence[StoredRun], resource: Resource, *, exactly: bool = False) -> list[Observation]:
    """What each run says, in the order given; `exactly` takes the figures as they are."""
    observations = (observation(row, resource, exactly=exactly) for row in rows)
    return [one for one in observations if one is not None]


def needs(observations: Sequence[Observation], resource: Resource) -> list[Need]:
    """The needs they stand for. A run that met a limit counts where no other is known to have used more."""
    most = max((one.value for one in observations if one.ending == COMPLETE), default=0.0)
    found = []
    for one in observations:
        amount = one.amount
        if one.ending == LIMIT:
            amount *= BEYOND_LIMIT
        if one.ending == COMPLETE or one.value > most or (one.ending == LIMIT and one.value >= most):
            found.append(Need(amount, one.features, one.seconds if resource is MEMORY else 1.0))
    return found


def features_of(row: StoredRun) -> dict[str, float]:
    """The numbers that a run is labelled with, and what it read."""
    features = {name: number for name, text in row.get("labels", {}).items() if (number := _number(text)) is not None}
    for name in (*_NOT_FEATURES, *_VERSION_LABELS):
        features.pop(name, None)
    if (read := row.get(READ_BYTES)) is not None:
        features.setdefault(READ_BYTES, float(read))
    return features


_NOT_FEATURES = ("task_id", "attempt", "job_id", "array_task_id")
"""Numbers that importers label runs with, and that only count them."""


def _number(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def observation(row: StoredRun, resource: Resource, *, exactly: bool = False) -> Observation | None:
    """None when it is not known what the run used."""
    used = row.get(resource.used) or 0.0
    # A run that met a limit used all of it, whatever was sampled; the time it then took to end is not part of it.
    value = row[resource.requested] if met_limit(row, resource) else used
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
    return LIMIT if row.get("status") == resource.met_by else CUT


def requested_today(rows: Sequence[StoredRun], resource: Resource) -> float | None:
    """What the newest run requested; a retry may have requested more than the spec does."""
    if not rows:
        return None
    key = job_of(rows[0]).key
    attempts = [row for row in rows if job_of(row).key == key] if key[0] else rows[:1]
    if attempt_of(rows[0]) > 1 and not key[0]:
        attempts = rows  # the task is not known of which it is a retry: the newest first attempt
    requested: float | None = min(attempts, key=attempt_of).get(resource.requested)
    return requested


def attempt_of(row: StoredRun) -> int:
    """Which attempt a run was: of a job of a workflow, or as an importer labelled it."""
    number = _number(row.get("labels", {}).get("attempt"))
    return job_of(row).attempt if number is None else int(number)


def of_newest_version(rows: Sequence[StoredRun]) -> list[StoredRun]:
    """Newest first, without those from before the newest version, once several runs of that have completed."""
    completed = [version_of(row) for row in rows if row.get("status") == Status.COMPLETED]
    newest = completed[0] if completed else ()
    if not newest or completed.count(newest) < SEVERAL:
        return list(rows)
    oldest = max(place for place, row in enumerate(rows) if version_of(row) == newest)
    return list(rows[: oldest + 1])


def version_of(row: StoredRun) -> tuple[str, ...]:
    """What a run is labelled with of the program that it ran; empty when nothing is known of it."""
    labels = row.get("labels", {})
    return tuple(f"{name}={labels[name]}" for name in _VERSION_LABELS if name in labels)


SEVERAL = 3
_VERSION_LABELS = ("version", "container")


def without_superseded(rows: Sequence[StoredRun]) -> list[StoredRun]:
    """Leave out attempts that met a limit if a later one completed: that one says what was needed."""
    if not any(row.get("status") in _MET for row in rows):
        return list(rows)
    completed = {task for row in rows if row.get("status") == Status.COMPLETED and (task := _task_of(row)) is not None}
    return [row for row in rows if row.get("status") not in _MET or _task_of(row) not in completed]


_MET = (Status.OOM, Status.TIMEOUT)


def _task_of(row: StoredRun) -> object:
    """What attempts at one task have in common; None when that is not known."""
    labels = row.get("labels")
    if labels and (task := labels.get("task")) is not None:
        return row["name"], task
    return job_of(row).key if row.get("workflow") else None
