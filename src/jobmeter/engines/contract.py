"""What a workflow needs of an engine, which is where its jobs run.

Nothing here knows processes or files of this machine. A task, a token and all that is reported of them are plain
data, so that they can be sent to another machine as JSON or pickle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jobmeter.journal.writer import RunJournal
from jobmeter.model import Requirement, Value

if TYPE_CHECKING:
    from jobmeter.record.types import Record, WorkflowPart

Token = dict[str, Any]
"""What an engine needs to find a task again. Only the engine that made it knows what is in it."""


class Measure(NamedTuple):
    """How a task is measured."""

    interval: float = 1.0
    window: float = 10.0
    measurements: list[str] | None = None  # keys and patterns; None: the default
    keep_windows: bool = True  # else its header and its record alone
    redact: list[str] | None = None  # what to hide in command lines; None: the default patterns


class Task(NamedTuple):
    """One attempt at one job: what to run, where its output goes, what it needs, and which job it is."""

    number: int  # the job's; of one job there is one attempt at a time
    attempt: int
    name: str
    command: list[str]
    directory: str | None
    environment: dict[str, str]  # added to the environment of whoever runs it
    stdout: str  # paths, as the runner of the workflow sees them
    stderr: str
    workflow: WorkflowPart  # id, run, job and attempt as run records have them
    requirement: Requirement = Requirement()
    enforce: bool = False  # the requirement is a limit
    heeds_sigterm: bool = True  # else it is killed at once when it has to end
    outputs: tuple[str, ...] = ()  # files that it must make
    metrics: str | None = None  # a JSON file in which it leaves metrics of its own
    labels: dict[str, str] = {}
    measure: Measure = Measure()
    container: dict[str, Any] | None = None  # the fields of ContainerOptions; None: no container
    custom: dict[str, float] = {}  # resources that a cluster has names of its own for

    def as_json(self) -> dict[str, Any]:
        """The task as JSON has it; `from_json` is the way back."""
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
    record: Record | None  # None: the engine lost it, and knows no more than the journal
    why: str | None = None  # in words, where the record does not say it: it could not begin, it was lost


class Capacity(NamedTuple):
    """What tasks may request that run at one time. None: not bounded, or not known."""

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    slots: int | None = None  # tasks at a time, whatever they request
    largest: Requirement = Requirement()  # the most that one task may request, where that is less
    custom: Mapping[str, float] | None = None  # the most of each resource that has a name of the cluster's own

    def bounded(self, cpus: float | None, memory_bytes: int | None, gpus: int | None) -> Capacity:
        """The same with what a user allows instead, where they say so."""
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
        """What is bounded, by name."""
        amounts = {"cpus": self.cpus, "memory_bytes": self.memory_bytes, "gpus": self.gpus, "slots": self.slots}
        return {name: value for name, value in amounts.items() if value is not None}


def _least(*amounts: Any) -> Any:
    return min((amount for amount in amounts if amount is not None), default=None)


class Capabilities(NamedTuple):
    """What can be expected of an engine."""

    shares_files: bool = True  # its jobs see the files of this machine: inputs are checked before anything starts
    retries_elsewhere: bool = False  # a task that was lost can run on another machine, so `retry` counts for it
    has_nodes: bool = False  # it requests nodes as the spec says: `num_nodes`, schedulers
    has_custom: bool = False  # its nodes may have resources with names of their own, which tasks may request
    has_queue: bool = False  # tasks that do not fit yet wait there: their start may be long after `start`


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
    wanted: bool  # its result is still of use: the job, and all it needs, is as it was


class Recovered(NamedTuple):
    """What became of tasks that a killed runner left."""

    ended: int = 0  # how many still ran, and were ended
    adopted: frozenset[int] = frozenset()  # jobs whose tasks go on: their end is reported as if started now


class Receiver(Protocol):
    """Takes what an engine reports, at any time and in any thread."""

    @property
    def journal(self) -> RunJournal:
        """Takes the lines of the tasks' journals, which come from their sessions, wherever these are."""

    def keep_token(self, task: Task, token: Token) -> None:
        """Keep how to find a task again. Called before the task can run."""

    def ended(self, ended: Ended) -> None:
        """A task has ended; of every task that was started, or adopted, once."""

    def broke(self, error: Exception) -> None:
        """The engine is of no more use."""

    def warn(self, message: str) -> None:
        """Report to the user, in one line."""


class Engine(Protocol):
    """Runs tasks and has them measured. Made with the values of its options; nothing is started before `open`."""

    options: Sequence[EngineOption]
    capabilities: Capabilities

    def check(self, container_runtimes: Collection[str] = ()) -> None:
        """LaunchError, with the reason, when it cannot run jobs from here, or none in one of these runtimes."""

    def capacity(self) -> Capacity:
        """What may run on it at one time."""

    def open(self, receiver: Receiver) -> None:
        """Get ready to run tasks. LaunchError when that cannot be."""

    def recover(self, tasks: Sequence[LeftTask]) -> Recovered:
        """See to what a killed runner left: on return each of these tasks has ended, or is adopted.

        One that is not wanted must end. One that ended while nobody looked may be adopted, too.
        """

    def start(self, task: Task) -> None:
        """Start a task, and return at once."""

    def cancel(self, number: int | None = None, *, at_once: bool = False) -> None:
        """End the task of one job, or all of them and start no more; `at_once` skips SIGTERM."""

    def levels(self) -> Mapping[int, Mapping[str, Value]]:
        """What each running task uses now, as far as that is known, by the number of its job."""

    def close(self) -> None:
        """Release everything, once all tasks have ended."""
