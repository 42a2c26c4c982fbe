"""The process of the driver of Ray, where it cannot even be started."""

from __future__ import annotations

import contextlib
import multiprocessing.connection  # noqa: F401 - to import it later takes a descriptor
import os
import resource
from collections.abc import Iterator

import pytest

from jobmeter.engines.ray.driver_process import DriverProcess
from jobmeter.errors import LaunchError


@contextlib.contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Only so many more files can be opened."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + count + 1, before[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(held[0]))
        for _ in range(count):
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in held:
            os.close(descriptor)


@pytest.mark.parametrize("left", [0, 2, 4])
def test_a_driver_that_cannot_be_started_is_an_error_of_one_line_and_leaves_nothing_open(left: int) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with descriptors_left(left), pytest.raises(LaunchError, match="driver of Ray cannot be started: Too many open"):
        DriverProcess()
    assert before >= set(os.listdir("/proc/self/fd"))
