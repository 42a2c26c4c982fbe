"""What a workflow asks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, Union

from jobmeter.launch.container.spec import ContainerOptions
from jobmeter.meter.watch import Sample
from jobmeter.session.command import JobOptions

if TYPE_CHECKING:
    from jobmeter.record.types import Record, WorkflowPart


class Task(NamedTuple):
    """One attempt at one job."""

    number: int  # the job's; of one job there is one attempt at a time
    name: str
    labels: dict[str, str]
    workflow: WorkflowPart
    job: JobOptions
    stdout: str  # paths
    stderr: str
    container: ContainerOptions | None = None


class Ended(NamedTuple):
    """How an attempt ended. `why` is told when it could not even begin."""

    number: int
    record: Record
    why: str | None = None


class Engine(Protocol):
    """Runs tasks and measures them."""

    def start(self, task: Task) -> None:
        """Begin a task, and return at once. However it ends, `on_end` is called once, in any thread.

        It is given the exception when not even a failure could be recorded: then the engine is of no more use.
        """

    def cancel(self, *, at_once: bool = False) -> None:
        """End every task that runs, and begin no more; `at_once` without SIGTERM and time to end by itself."""

    def levels(self) -> Mapping[int, Sample]:
        """What each running task uses just now, by the number of its job."""

    def close(self) -> None:
        """Let go of everything, once all tasks have ended."""


OnEnd = Callable[[Union[Ended, Exception]], None]
