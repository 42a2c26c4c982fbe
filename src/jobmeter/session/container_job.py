"""A command in a container, and what it requests."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.errors import UsageError
from jobmeter.launch.container import spec as container_spec
from jobmeter.launch.container.spec import ContainerOptions
from jobmeter.launch.spawn import Streams
from jobmeter.model import Requirement


class ContainerJob(NamedTuple):
    """A command in a container, and what it requests, which is a limit. No command: the image's own."""

    container: ContainerOptions
    command: list[str] = []
    requirement: Requirement = Requirement()
    streams: Streams | None = None  # None: jobmeter's own
    outputs: tuple[str, ...] = ()  # files of this machine that it is to make
    heeds_sigterm: bool = True  # else it is killed at once when it has to end


def check_job(job: ContainerJob) -> None:
    """UsageError for a job that is not valid."""
    container_spec.check(job.container)
    if any("\0" in word for word in job.command):
        raise UsageError("a word of the command has a NUL in it, which no program can be given")
    for name, value in job.requirement.requested().items():
        if not 0 < value < float("inf"):
            raise UsageError(f"{name}: {value} is not a number above 0")
