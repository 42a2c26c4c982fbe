"""What a job in a container requests."""

from __future__ import annotations

import pytest

from jobmeter.launch.container.spec import ContainerOptions, parse_gpus
from jobmeter.model import Requirement
from jobmeter.session.container_job import ContainerJob


@pytest.mark.parametrize(("gpus", "count"), [("2", 2), ("device=0,GPU-3", 2), ("all", None), (None, None)])
def test_the_gpus_that_a_container_is_given_are_requested(gpus: str | None, count: int | None) -> None:
    options = ContainerOptions("image", gpus=None if gpus is None else parse_gpus(gpus))
    job = ContainerJob(options, ["true"], Requirement(cpus=1))
    assert Requirement(cpus=1, gpus=count) == job.recorded_requirement


def test_a_number_of_gpus_that_a_job_requests_stands() -> None:
    job = ContainerJob(ContainerOptions("image", gpus=parse_gpus("all")), ["true"], Requirement(gpus=3))
    assert 3 == job.recorded_requirement.gpus
