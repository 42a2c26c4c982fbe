"""What the runner keeps in memory of every attempt: the figures from which tables and totals are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.analyse import stored_run
from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.model import Outcome, Status

if TYPE_CHECKING:
    from jobmeter.record.types import Record


class Attempt(NamedTuple):
    """One attempt at one job. A value that was not measured, or not requested, is None."""

    number: int
    name: str
    step: str
    attempt: int
    run: str  # the id of its run
    outcome: Outcome
    started: str
    wall_seconds: float | None
    figures: tuple[float | None, ...]  # in the order of `HEADLINE`; a tuple, because there may be many attempts
    cpu_quality: str | None
    memory_quality: str | None
    cpus: float | None  # what it requested
    memory_bytes: float | None
    runtime_seconds: float | None
    gpus: int | None
    fingerprint: str | None
    at_least: Sequence[str] | None = None  # the figures that may have been higher
    enforced: Sequence[str] | None = None  # the limits that the kernel enforced

    @property
    def status(self) -> Status:
        return self.outcome.status

    def figure(self, name: str) -> float | None:
        """A headline figure by its name."""
        return self.figures[_PLACES[name]]

    def as_row(self) -> dict[str, Any]:
        """The attempt as a row of the store's index, for the functions that judge rows; a None is left out."""
        row = {
            "id": self.run,
            "name": self.name,
            "exit_code": self.outcome.exit_code,
            "signal": self.outcome.signal,
            "requirement_cpus": self.cpus,
            "requirement_memory_bytes": self.memory_bytes,
            "requirement_runtime_seconds": self.runtime_seconds,
            "requirement_gpus": self.gpus,
            "at_least": self.at_least,
            "enforced": self.enforced,
            "started": self.started,
            "wall_seconds": self.wall_seconds,
            "cpu_quality": self.cpu_quality,
            "memory_quality": self.memory_quality,
            **dict(zip(_PLACES, self.figures)),
        }
        job = {"job_id": self.number, "step": self.step, "attempt": self.attempt}
        return {"status": self.status.value, "workflow_job": job, **{k: v for k, v in row.items() if v is not None}}


_PLACES = {figure.name: place for place, figure in enumerate(HEADLINE)}


def of_record(record: Record) -> Attempt:
    """The attempt of a run record."""
    return of_row({**stored_run.of_record(record), "started": record["started"], "workflow_job": record["workflow"]})


def of_row(row: Mapping[str, Any]) -> Attempt:
    """The attempt of a row of the store's index."""
    job = row["workflow_job"]
    return Attempt(
        number=job["job_id"],
        name=row["name"],
        step=job.get("step") or row["name"],
        attempt=job.get("attempt") or 1,
        run=row["id"],
        outcome=Outcome(Status(row["status"]), row.get("exit_code"), row.get("signal")),
        started=row["started"],
        wall_seconds=row.get("wall_seconds"),
        figures=tuple(row.get(name) for name in _PLACES),
        cpu_quality=row.get("cpu_quality"),
        memory_quality=row.get("memory_quality"),
        cpus=row.get("requirement_cpus"),
        memory_bytes=row.get("requirement_memory_bytes"),
        runtime_seconds=row.get("requirement_runtime_seconds"),
        gpus=row.get("requirement_gpus"),
        fingerprint=job.get("fingerprint"),
        at_least=row.get("at_least"),
        enforced=row.get("enforced"),
    )


def latest(attempts: list[Attempt]) -> dict[int, Attempt]:
    """Job → its last attempt; of attempts with the same number, the one that started last."""
    newest: dict[int, Attempt] = {}
    for attempt in attempts:
        other = newest.get(attempt.number)
        if other is None or (attempt.attempt, attempt.started) >= (other.attempt, other.started):
            newest[attempt.number] = attempt
    return newest
