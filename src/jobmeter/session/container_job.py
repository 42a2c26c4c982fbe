"""A command in a container, and what it requests."""

from __future__ import annotations

from typing import NamedTuple

from jobmeter.errors import UsageError
from jobmeter.launch.container import spec as container_spec
from jobmeter.launch.container.spec import ContainerOptions
from jobmeter.launch.spawn import Streams
from jobmeter.model import Requirement


class ContainerJob(NamedTuple):
    """A command in a container, and its requirement, which is enforced as limits. No command: that of the image."""

    container: ContainerOptions
    command: list[str] = []
    requirement: Requirement = Requirement()
    streams: Streams | None = None  # None: jobmeter's own
    outputs: tuple[str, ...] = ()  # files on this machine that it has to make
    heeds_sigterm: bool = True  # else it is killed at once, without SIGTERM, when it has to end

    @property
    def recorded_requirement(self) -> Requirement:
        """The requirement, with the number of GPUs that the container is given unless another one is requested."""
        gpus = self.container.gpus
        if gpus is None or self.requirement.gpus is not None:
            return self.requirement
        return self.requirement._replace(gpus=gpus.total)


def check_job(job: ContainerJob) -> None:
    """Raise UsageError if the job is not valid."""
    container_spec.check(job.container)
    if any("\0" in word for word in job.command):
        raise UsageError("an argument contains a NUL byte, which cannot be passed to a program")
    for name, value in job.requirement.requested().items():
        if not 0 < value < float("inf"):
            raise UsageError(f"{name}: {value} is not a number above 0")
