"""A block as the job of a session."""

from __future__ import annotations

from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Outcome
from jobmeter.session.measuring import JobEnd, Measuring, OpenJob

if TYPE_CHECKING:
    from jobmeter.session.block import Block


class BlockJob:
    """A block that already runs: there is nothing to launch or to wait for. See `session.contract.JobControl`."""

    in_container = False

    def __init__(self, block: Block) -> None:
        self._block = block

    def prepare(self, measuring: Measuring) -> None:
        self._measuring = measuring

    def open(self) -> OpenJob:
        return self._block.open_job()

    def run(self) -> None:
        """Do nothing: the block already runs."""

    def wait(self) -> None:
        """Do nothing: the block was stopped before."""

    def stop(self, *, at_once: bool) -> None:
        """Do nothing: the block is part of the program that calls this."""

    def end(self) -> JobEnd:
        return self._block.job_end(self._measuring.provenance)

    def outcome(self) -> Outcome:
        return self._block.outcome

    def close(self) -> None:
        """Do nothing: the block releases its resources itself."""
