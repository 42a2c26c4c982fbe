"""Callbacks for what happens to the jobs of a workflow while it runs."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.model import Requirement
from jobmeter.workflow.attempts import Attempt
from jobmeter.workflow.plan import Job


class Running(NamedTuple):
    """An attempt that was handed to the engine and has not ended: it runs, or waits in the engine's queue."""

    job: Job
    attempt: int
    since: float  # monotonic; when the engine got it
    requirement: Requirement


class Listener:
    """Its methods are called in the runner's thread, when something happens. Override those that you need."""

    def started(self, running: Running) -> None: ...
    def ended(self, attempt: Attempt, why: str | None, again: Requirement | None) -> None: ...
    def recovering(self, attempt: Attempt, script: str) -> None: ...
    def blocked(self, job: Job, by: Job) -> None: ...
