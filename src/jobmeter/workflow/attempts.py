"""What is kept in mind of every attempt: the figures that tables and totals are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.analyse.outcome import outcome_of
from jobmeter.model import Outcome, Status
from jobmeter.record.read import figures

if TYPE_CHECKING:
    from jobmeter.record.types import Record


class Attempt(NamedTuple):
    """One attempt at one job. What was not measured is None."""

    number: int
    name: str
    step: str
    attempt: int
    run: str  # the id of its run
    outcome: Outcome
    started: str
    wall_seconds: float | None
    cpu_seconds: float | None
    cpu_peak_percent: float | None
    cpu_mean_percent: float | None
    memory_peak_bytes: float | None
    memory_mean_bytes: float | None
    cpu_quality: str | None
    memory_quality: str | None
    cpus: float | None  # what it requested
    memory_bytes: float | None
    runtime_seconds: float | None
    fingerprint: str | None
    enforced: list[str] | None = None  # the limits that the kernel kept it to

    @property
    def status(self) -> Status:
        return self.outcome.status

    def as_row(self) -> dict[str, Any]:
        """As the store's index has it, for the functions that judge rows; what is not other is absent."""
        row = {
            "id": self.run,
            "name": self.name,
            "exit_code": self.outcome.exit_code,
            "signal": self.outcome.signal,
            "requirement_cpus": self.cpus,
            "requirement_memory_bytes": self.memory_bytes,
            "requirement_runtime_seconds": self.runtime_seconds,
            "enforced": self.enforced,
            **{name: getattr(self, name) for name in _FIGURES},
        }
        job = {"job_id": self.number, "step": self.step, "attempt": self.attempt}
        return {"status": self.status.value, "workflow_job": job, **{k: v for k, v in row.items() if v is not None}}


_FIGURES = (
    "started", "wall_seconds", "cpu_seconds", "cpu_peak_percent", "cpu_mean_percent", "memory_peak_bytes",
    "memory_mean_bytes", "cpu_quality", "memory_quality",
)  # fmt: skip


def of_record(record: Record) -> Attempt:
    """The attempt that a run record tells of."""
    known: dict[str, Any] = {name: figure["value"] for name, figure in figures(record).items()}
    for name, figure in (("cpu_quality", "cpu_seconds"), ("memory_quality", "memory_peak_bytes")):
        known[name] = figures(record)[figure]["quality"] if figure in figures(record) else None
    return _attempt(record, record["workflow"], outcome_of(record), known, record.get("requirement", {}))


def of_row(row: Mapping[str, Any]) -> Attempt:
    """The attempt that a row of the store's index tells of."""
    outcome = Outcome(Status(row["status"]), row.get("exit_code"), row.get("signal"))
    requirement = {name: row.get(f"requirement_{name}") for name in ("cpus", "memory_bytes", "runtime_seconds")}
    return _attempt(row, row["workflow_job"], outcome, row, requirement)


def _attempt(
    run: Mapping[str, Any],
    job: Mapping[str, Any],
    outcome: Outcome,
    figures: Mapping[str, Any],
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
        cpu_seconds=figures.get("cpu_seconds"),
        cpu_peak_percent=figures.get("cpu_peak_percent"),
        cpu_mean_percent=figures.get("cpu_mean_percent"),
        memory_peak_bytes=figures.get("memory_peak_bytes"),
        memory_mean_bytes=figures.get("memory_mean_bytes"),
        cpu_quality=figures.get("cpu_quality"),
        memory_quality=figures.get("memory_quality"),
        cpus=requirement.get("cpus"),
        memory_bytes=requirement.get("memory_bytes"),
        runtime_seconds=requirement.get("runtime_seconds"),
        fingerprint=job.get("fingerprint"),
        enforced=run.get("enforced"),
    )


def latest(attempts: list[Attempt]) -> dict[int, Attempt]:
    """Job → its last attempt; of equal ones that which started last."""
    newest: dict[int, Attempt] = {}
    for attempt in attempts:
        other = newest.get(attempt.number)
        if other is None or (attempt.attempt, attempt.started) >= (other.attempt, other.started):
            newest[attempt.number] = attempt
    return newest
