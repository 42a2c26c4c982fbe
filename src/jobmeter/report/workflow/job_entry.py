"""What the report of a workflow shows of its jobs. Plain values, made by the code that has the plan and its runs."""

from __future__ import annotations

from typing import NamedTuple


class AttemptEntry(NamedTuple):
    """One attempt at a job, on the timeline of the workflow."""

    run: str  # the id of its run
    attempt: int
    status: str
    ending: str  # how it ended, in words
    begin: float  # seconds since the first job began
    seconds: float


class ResourceUsage(NamedTuple):
    """One resource of a job: what it requested and used, in one unit. None: not known."""

    unit: str
    requested: float | None
    used: float | None
    mean: float | None
    at_least: bool  # it may have used more
    over: str  # how it used too much, in words; empty when it did not


class JobEntry(NamedTuple):
    """One job, with what its last attempt used."""

    number: int
    name: str
    step: str
    status: str
    reason: str  # empty if the status says all
    command: str
    attempts: tuple[AttemptEntry, ...]
    cpu: ResourceUsage
    memory: ResourceUsage
    runtime: ResourceUsage
    critical: bool  # on the chain that took longest


class Load(NamedTuple):
    """What all jobs together requested and used of one resource over time: steps, each holding until its time."""

    title: str
    unit: str
    times: list[float]
    used: list[float]
    requested: list[float]
    capacity: float | None


class WorkflowReport(NamedTuple):
    name: str
    caption: str
    figures: list[tuple[str, str]]  # name and amount, for the tiles
    critical: str  # the chain that took longest, in words; empty when nothing was run
    jobs: list[JobEntry]
    loads: list[Load]
    seconds: float  # from the first start to the last end
    missing_curves: str  # why jobs have no curves; empty when they have
