"""The plan: the jobs of a spec with everything resolved, ready to be run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter import units
from jobmeter.errors import UsageError
from jobmeter.garbage import no_collection
from jobmeter.model import Requirement, Status

if TYPE_CHECKING:
    from jobmeter.engines.contract import Capacity


class Retry(NamedTuple):
    """When a job is tried again, and how much more it then requests."""

    times: int = 0
    on: frozenset[str] = frozenset((Status.OOM, Status.TIMEOUT))
    exit_codes: frozenset[int] = frozenset()
    memory_factor: float = 1.5
    runtime_factor: float = 1.5
    later_factor: float | None = None  # replaces both from the third attempt on; None: they stay


class FailureRule(NamedTuple):
    """What happens after certain exit codes: a recovery script may run, and the job is tried again."""

    exit_codes: frozenset[int]
    matches_all: bool  # every exit code but 0
    script: str | None  # None: the job is tried again as it is
    retries: int


class UserData(NamedTuple):
    """A value that jobs hand to each other."""

    value: Any  # as JSON; None: a job makes it
    is_ephemeral: bool  # it need not outlive the workflow


def data_reference(name: str) -> str:
    """The placeholder in a command for the path of user data, which is different in each run."""
    return f"${{user_data.{name}}}"


class Job(NamedTuple):
    """One job, everything resolved."""

    number: int  # 1, 2, 3 … in the order of the spec
    name: str
    step: str  # its name as written in the spec: the same for all jobs of a sweep
    command: list[str]  # what is executed
    script: str  # the command as a person wrote it, parameters filled in
    directory: str  # absolute
    environment: dict[str, str]  # variables that are added to jobmeter's own
    requirement: Requirement
    gpus: int
    requirement_name: str | None
    blocked_by: tuple[int, ...]  # numbers, ascending
    inputs: tuple[str, ...]  # absolute paths
    outputs: tuple[str, ...]  # absolute paths
    retry: Retry
    priority: int
    labels: dict[str, str]  # the spec's labels and the job's parameters
    container: dict[str, Any] | None  # has at least `image`; `volumes` of the spec are in `mounts`
    runs_after_failure: bool = False  # it starts once all it waits for have ended, however they ended
    failure_rules: tuple[FailureRule, ...] = ()  # the first that matches counts
    input_data: tuple[str, ...] = ()  # names of user data
    output_data: tuple[str, ...] = ()
    initial_data: str = ""  # the values that the spec gives to its input data, as JSON text
    heeds_sigterm: bool = True  # False: it is killed at once when it has to end
    rank: tuple[float, ...] = ()  # of jobs with equal priority, the one with the smallest rank goes first
    is_action: bool = False  # a command of an action, not a job of the spec
    num_nodes: int = 1
    scheduler: str | None = None  # the name of the scheduler that requests nodes for it
    custom: Mapping[str, float] = {}  # amounts of resources that only the cluster defines, by name


class Monitor(NamedTuple):
    """What is measured of the jobs, and how much of it is stored."""

    enabled: bool = True
    granularity: str = "summary"  # or time_series
    interval: float = 5.0  # seconds
    generate_plots: bool = False


class NodeRequests(NamedTuple):
    """How a spec requests nodes of a cluster, for engines that have nodes; texts and numbers as they are written."""

    schedulers: tuple[dict[str, Any], ...] = ()
    defaults: dict[str, Any] = {}
    allocations: tuple[dict[str, Any], ...] = ()  # actions that request nodes

    def fields(self) -> list[str]:
        """The names of the fields of the spec that request nodes."""
        named = {
            "slurm_schedulers": self.schedulers,
            "slurm_defaults": self.defaults,
            "schedule_nodes": self.allocations,
        }
        return [name for name, value in named.items() if value]


class Plan(NamedTuple):
    """A spec, ready to be run."""

    name: str
    description: str
    user: str  # empty when the spec names none
    path: str  # absolute, of the spec
    monitor: Monitor
    enforce: bool
    jobs: list[Job]
    project: str = ""
    metadata: Any = None  # as JSON
    user_data: dict[str, UserData] = {}
    node_requests: NodeRequests = NodeRequests()
    without_effect: tuple[str, ...] = ()  # fields of the spec that mean nothing to jobmeter


def load_plan(path: str) -> Plan:
    """The plan for the spec in a file. Raises UsageError with a line for each problem, which says where it is.

    The file is YAML, JSON, JSON5, TOML or KDL, by its extension. Nothing is started and nothing written.
    """
    # pydantic takes longer to import than everything else here; a module that only needs the types must not load it.
    from jobmeter.workflow.spec.plan.planning import make_plan
    from jobmeter.workflow.spec.read.loading import read_document

    with no_collection():  # of a large document, for three quarters of the time
        return make_plan(read_document(path))


def check_fit(jobs: Iterable[Job], capacity: Capacity) -> None:
    """Raise UsageError if a job requests more than one job may have, and so could never start."""
    most = capacity.most()
    for job in jobs:
        excess, limit = _misfit(job, most)
        if excess:
            raise UsageError(
                f"job {job.name!r} requests {excess}, and {limit}: it can never start. "
                "Request less, or raise the limit with --cpus, --memory or --gpus."
            )
        for name, amount in job.custom.items():
            most_custom = amount if capacity.custom is None else capacity.custom.get(name, 0.0)
            if amount > most_custom:
                limit = _there_are(most_custom)
                raise UsageError(f"job {job.name!r} requests {amount:g} {name}, and {limit}: it can never start.")


def _misfit(job: Job, most: Requirement) -> tuple[str, str]:
    """The amount that is too large and the limit, in words; both empty if the job fits."""
    cpus, memory_bytes = job.requirement.cpus, job.requirement.memory_bytes
    if cpus is not None and most.cpus is not None and cpus > most.cpus:
        return f"{cpus:g} cpus", _there_are(most.cpus)
    if memory_bytes is not None and most.memory_bytes is not None and memory_bytes > most.memory_bytes:
        # Rounded, a request that is one byte too large would read `32 GiB, and there are 32 GiB`.
        requested, limit = units.text(memory_bytes, "bytes"), units.text(most.memory_bytes, "bytes")
        if requested == limit:
            requested, limit = f"{memory_bytes:,} bytes", f"{most.memory_bytes:,} bytes"
        return f"{requested} of memory", f"there are {limit}"
    if most.gpus is not None and job.gpus > most.gpus:
        return f"{job.gpus} gpus", _there_are(most.gpus)
    return "", ""


def _there_are(count: float) -> str:
    if count == 0:
        return "there are none"
    return f"there is {count:g}" if count == 1 else f"there are {count:g}"
