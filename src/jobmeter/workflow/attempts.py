"""What the runner keeps in memory of every attempt: the figures from which tables and totals are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.analyse.headline_table import HEADLINE
from jobmeter.analyse.outcome import outcome_of
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.record.read import figures

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
    enforced: list[str] | None = None  # the limits that the kernel enforced

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
    fields: dict[str, Any] = {name: figure["value"] for name, figure in figures(record).items()}
    for name, figure in (("cpu_quality", "cpu_seconds"), ("memory_quality", "memory_peak_bytes")):
        fields[name] = figures(record)[figure]["quality"] if figure in figures(record) else None
    return _attempt(record, record["workflow"], outcome_of(record), fields, record.get("requirement", {}))


def of_row(row: Mapping[str, Any]) -> Attempt:
    """The attempt of a row of the store's index."""
    outcome = Outcome(Status(row["status"]), row.get("exit_code"), row.get("signal"))
    requirement = {name: row.get(f"requirement_{name}") for name in Requirement._fields}
    return _attempt(row, row["workflow_job"], outcome, row, requirement)


def _attempt(
    run: Mapping[str, Any],
    job: Mapping[str, Any],
    outcome: Outcome,
    fields: Mapping[str, Any],
    requirement: Mapping[str, Any],
) -> Attempt:
    return Attempt(
        number=job["job_id"],
        name=run["name"],
        step=job.get("step") or run["name"],
        attempt=job.get("attempt") or 1,
        run=run["id"],
        outcome=outcome,
        started=run["started"],
        wall_seconds=run.get("wall_seconds"),
        figures=tuple(fields.get(name) for name in _PLACES),
        cpu_quality=fields.get("cpu_quality"),
        memory_quality=fields.get("memory_quality"),
        cpus=requirement.get("cpus"),
        memory_bytes=requirement.get("memory_bytes"),
        runtime_seconds=requirement.get("runtime_seconds"),
        gpus=requirement.get("gpus"),
        fingerprint=job.get("fingerprint"),
        enforced=run.get("enforced"),
    )


def latest(attempts: list[Attempt]) -> dict[int, Attempt]:
    """Job → its last attempt; of attempts with the same number, the one that started last."""
    newest: dict[int, Attempt] = {}
    for attempt in attempts:
        other = newest.get(attempt.number)
        if other is None or (attempt.attempt, attempt.started) >= (other.attempt, other.started):
            newest[attempt.number] = attempt
    return newest
