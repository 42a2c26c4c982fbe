"""The plan: the jobs of a spec with everything resolved, ready to be run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from jobmeter import units
from jobmeter.errors import UsageError
from jobmeter.model import Requirement, Status


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


def check_fit(jobs: Iterable[Job], cpus: float, memory_bytes: int | None, gpus: int) -> None:
    """UsageError when a job asks for more than there is, and so could never start."""
    for job in jobs:
        wanted, there = _misfit(job, cpus, memory_bytes, gpus)
        if wanted:
            raise UsageError(
                f"job {job.name!r} asks for {wanted}, and {there}: it can never start. "
                "Ask for less, or say with --cpus, --memory or --gpus what may be given out."
            )


def _misfit(job: Job, cpus: float, memory_bytes: int | None, gpus: int) -> tuple[str, str]:
    """What the job asks for too much, and what there is; both empty when it fits."""
    asked = job.requirement
    if asked.cpus is not None and asked.cpus > cpus:
        return f"{asked.cpus:g} cpus", _there_are(cpus)
    if asked.memory_bytes is not None and memory_bytes is not None and asked.memory_bytes > memory_bytes:
        # Both in words of the same length would read `32 GiB, and there are 32 GiB` for a byte too much.
        wanted, there = units.text(asked.memory_bytes, "bytes"), units.text(memory_bytes, "bytes")
        if wanted == there:
            wanted, there = f"{asked.memory_bytes:,} bytes", f"{memory_bytes:,} bytes"
        return f"{wanted} of memory", f"there are {there}"
    if job.gpus > gpus:
        return f"{job.gpus} gpus", _there_are(gpus)
    return "", ""


def _there_are(count: float) -> str:
    if count == 0:
        return "there are none"
    return f"there is {count:g}" if count == 1 else f"there are {count:g}"
