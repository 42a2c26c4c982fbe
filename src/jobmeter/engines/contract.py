"""The interface between a workflow and the engine that runs its jobs.

Nothing here depends on processes or files of this machine. Tasks, tokens and all reports about them are plain data, so
that they can be sent to another machine as JSON or pickle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jobmeter.journal.writer import RunJournal
from jobmeter.model import Requirement, Value

if TYPE_CHECKING:
    from jobmeter.record.types import Record, WorkflowPart

Token = dict[str, Any]
"""What an engine needs to find a task again. Its content is private to the engine that made it."""


class Measure(NamedTuple):
    """How a task is measured."""

    interval: float = 1.0
    window: float = 10.0
    measurements: list[str] | None = None  # keys and patterns; None: the default
    keep_windows: bool = True  # False: the journal has only a header and a record
    redact: list[str] | None = None  # what to hide in command lines; None: the default patterns


class Task(NamedTuple):
    """One attempt at one job: what to run, where its output goes, what it needs, and which job it is."""

    number: int  # of the job; a job has one running attempt at a time
    attempt: int
    name: str
    command: list[str]
    directory: str | None
    environment: dict[str, str]  # added to the environment of the process that runs the task
    stdout: str  # paths, as the runner of the workflow sees them
    stderr: str
    workflow: WorkflowPart  # id, run, job and attempt as run records have them
    requirement: Requirement = Requirement()
    enforce: bool = False  # the requirement is a hard limit
    heeds_sigterm: bool = True  # False: to end it, it is killed at once, without SIGTERM
    outputs: tuple[str, ...] = ()  # files that it must make
    metrics: str | None = None  # a JSON file to which the job writes metrics of its own
    labels: dict[str, str] = {}
    measure: Measure = Measure()
    container: dict[str, Any] | None = None  # the fields of ContainerOptions; None: no container
    custom: dict[str, float] = {}  # amounts of custom resources, by the name that the cluster gives them

    def as_json(self) -> dict[str, Any]:
        """The task as an object for JSON; `from_json` is the inverse."""
        return {**self._asdict(), "requirement": self.requirement.requested(), "measure": self.measure._asdict()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Task:
        return cls(
            **{
                **fields,
                "requirement": Requirement(**fields["requirement"]),
                "measure": Measure(**fields["measure"]),
                "outputs": tuple(fields["outputs"]),
            }
        )


class Ended(NamedTuple):
    """How an attempt ended."""

    number: int
    record: Record | None  # None: the engine lost the task; all that is known is in the journal
    why: str | None = None  # a reason that is not in the record: the task could not start, or was lost


class Capacity(NamedTuple):
    """The most that all tasks which run at one time may request together. None: not limited, or not known."""

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    slots: int | None = None  # tasks at a time, whatever they request
    largest: Requirement = Requirement()  # the most that one task may request, if that is less
    custom: Mapping[str, float] | None = None  # the most that one task may request of each custom resource, by name

    def bounded(self, cpus: float | None, memory_bytes: int | None, gpus: int | None) -> Capacity:
        """This capacity with the limits that the user set in place of the engine's; None: the user set none."""
        return self._replace(
            cpus=self.cpus if cpus is None else cpus,
            memory_bytes=self.memory_bytes if memory_bytes is None else memory_bytes,
            gpus=self.gpus if gpus is None else gpus,
        )

    def most(self) -> Requirement:
        """The most that one task may request."""
        return Requirement(
            _least(self.cpus, self.largest.cpus),
            _least(self.memory_bytes, self.largest.memory_bytes),
            None,
            _least(self.gpus, self.largest.gpus),
        )

    def known(self) -> dict[str, float]:
        """The amounts that are limited, by name."""
        amounts = {"cpus": self.cpus, "memory_bytes": self.memory_bytes, "gpus": self.gpus, "slots": self.slots}
        return {name: value for name, value in amounts.items() if value is not None}


def _least(*amounts: Any) -> Any:
    return min((amount for amount in amounts if amount is not None), default=None)


class Capabilities(NamedTuple):
    """What can be expected of an engine."""

    shares_files: bool = True  # its jobs see the files of this machine: inputs are checked before anything starts
    retries_elsewhere: bool = False  # a task that was lost can run on another machine, so `retry` applies to it
    has_nodes: bool = False  # it requests nodes from a scheduler as the spec says: `num_nodes`, schedulers
    has_custom: bool = False  # its nodes may have custom resources, which tasks may request
    has_queue: bool = False  # tasks that do not fit yet wait in its queue: they may begin long after `start`


class EngineOption(NamedTuple):
    """An option that an engine adds to `workflow run` and `resume`."""

    name: str  # `address` is --address
    metavar: str
    help: str


class LeftTask(NamedTuple):
    """A task of a runner that was killed: it was started, and its end is not recorded."""

    number: int
    attempt: int
    token: Token
    wanted: bool  # its result is still needed: neither the job nor what it depends on has changed


class Recovered(NamedTuple):
    """What `Engine.recover` did with the tasks that a killed runner left."""

    ended: int = 0  # how many still ran, and were ended
    adopted: frozenset[int] = frozenset()  # jobs whose tasks keep running; their end is reported as if started now


class Receiver(Protocol):
    """Receives what an engine reports. The engine may call it at any time and in any thread."""

    @property
    def journal(self) -> RunJournal:
        """Receives the lines of the tasks' journals from their sessions, on whatever machine these are."""

    def keep_token(self, task: Task, token: Token) -> None:
        """Store the token by which the task can be found again. Called before the task can run."""

    def ended(self, ended: Ended) -> None:
        """A task has ended. Called once for every task that was started or adopted."""

    def broke(self, error: Exception) -> None:
        """The engine has failed, and can run no more tasks."""

    def warn(self, message: str) -> None:
        """Show the user a warning of one line."""


class Engine(Protocol):
    """Runs and measures tasks. Constructed with the values of its options; it starts nothing before `open`."""

    options: Sequence[EngineOption]
    capabilities: Capabilities

    def check(self, container_runtimes: Collection[str] = ()) -> None:
        """Raise LaunchError, with the reason, if no jobs can be run from here, or none in one of these runtimes."""

    def capacity(self) -> Capacity:
        """What the tasks that run on it at one time may request."""

    def open(self, receiver: Receiver) -> None:
        """Get ready to run tasks. Raises LaunchError if that is not possible."""

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        """Handle the tasks that a killed runner left: on return each of them has ended, or is adopted.

        A task that is not wanted must be ended. A task that ended while it had no runner may be adopted, too.
        """

    def start(self, task: Task) -> None:
        """Start a task, and return at once."""

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        """End the task of this job. Without a number, end all tasks and start no more. `at_once` skips SIGTERM."""

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        """What each running task uses now, as far as that is known, by the number of its job."""

    def close(self) -> None:
        """Release everything, once all tasks have ended."""
