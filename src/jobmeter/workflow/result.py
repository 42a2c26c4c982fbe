"""The result of running a workflow."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.model import Status
from jobmeter.workflow.attempts import Attempt


class Result(NamedTuple):
    """How a workflow ended."""

    attempts: list[Attempt]  # of this runner, in the order in which they ended
    blocked: dict[int, int]  # job → the failed job that it needs
    not_begun: int
    stopped: bool
    wall_seconds: float
    concurrency_peak: int

    @property
    def succeeded(self) -> bool:
        return not (self.stopped or self.blocked or self.failed or self.not_begun)

    @property
    def failed(self) -> list[Attempt]:
        """The last attempts of jobs that did not complete."""
        last = {attempt.number: attempt for attempt in self.attempts}
        return [attempt for attempt in last.values() if attempt.status != Status.COMPLETED]
