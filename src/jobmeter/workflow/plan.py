"""The plan: the jobs of a spec with everything resolved, ready to be run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter import units
from jobmeter.errors import UsageError
from jobmeter.model import Requirement, Status

if TYPE_CHECKING:
    from jobmeter.engines.contract import Capacity


class Retry(NamedTuple):
    """When a job is tried again, and how much more it then asks for."""

    times: int = 0
    on: frozenset[str] = frozenset((Status.OOM, Status.TIMEOUT))
    exit_codes: frozenset[int] = frozenset()
    memory_factor: float = 1.5
    runtime_factor: float = 1.5


class Job(NamedTuple):
    """One job, everything resolved."""

    number: int  # 1, 2, 3 … in the order of the spec
    name: str
    step: str  # its name as written in the spec: the same for all jobs of a sweep
    command: list[str]  # what is executed
    script: str  # the command as a person wrote it, parameters filled in
    directory: str  # absolute
    environment: dict[str, str]  # what is added to jobmeter's own
    requirement: Requirement
    gpus: int
    requirement_name: str | None
    blocked_by: tuple[int, ...]  # numbers, ascending
    inputs: tuple[str, ...]  # absolute paths
    outputs: tuple[str, ...]  # absolute paths
    retry: Retry
    priority: int
    labels: dict[str, str]  # the spec's labels and the job's parameters
    container: dict[str, Any] | None  # at least `image`; `volumes` is the same as `mounts` and comes as that


class Monitor(NamedTuple):
    """What is measured of the jobs, and how much of it is kept."""

    enabled: bool = True
    granularity: str = "summary"  # or time_series
    interval: float = 5.0  # seconds
    generate_plots: bool = False


class Plan(NamedTuple):
    """A spec, ready to be run."""

    name: str
    description: str
    user: str  # empty when the spec names none
    path: str  # absolute, of the spec
    monitor: Monitor
    enforce: bool
    jobs: list[Job]


def load_plan(path: str) -> Plan:
    """The plan for the spec in a file. UsageError, in one line that says where, for everything that is wrong with it.

    The file is YAML, JSON or TOML, which its extension tells. Nothing is started and nothing written.
    """
    # pydantic takes longer to import than everything else here, and those who only need the types need it not.
    from jobmeter.workflow.spec.plan.planning import make_plan
    from jobmeter.workflow.spec.read.loading import collecting_nothing, read_document

    with collecting_nothing():
        return make_plan(read_document(path))


def check_fit(jobs: Iterable[Job], capacity: Capacity) -> None:
    """UsageError when a job requests more than one job may have, and so could never start."""
    most = capacity.most()
    for job in jobs:
        excess, limit = _misfit(job, most)
        if excess:
            raise UsageError(
                f"job {job.name!r} requests {excess}, and {limit}: it can never start. "
                "Request less, or say with --cpus, --memory or --gpus what may be given out."
            )


def _misfit(job: Job, most: Requirement) -> tuple[str, str]:
    """What the job requests too much, and what there is; both empty when it fits."""
    cpus, memory_bytes = job.requirement.cpus, job.requirement.memory_bytes
    if cpus is not None and most.cpus is not None and cpus > most.cpus:
        return f"{cpus:g} cpus", _there_are(most.cpus)
    if memory_bytes is not None and most.memory_bytes is not None and memory_bytes > most.memory_bytes:
        # Both in words of the same length would read `32 GiB, and there are 32 GiB` for a byte too much.
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
