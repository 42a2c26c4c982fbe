"""The process of the driver of Ray, where it cannot be started, answer or be understood."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from jobmeter.engines.ray import driver_process
from jobmeter.engines.ray.driver_process import DriverProcess
from jobmeter.errors import LaunchError
from tests.waiting import LONG


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


WITHOUT_MEMORY = """
import sys
from multiprocessing.connection import Connection
from jobmeter.engines.ray.driver import Driver

class Full(Connection):
    def send(self, message):
        raise MemoryError

Driver(Full(int(sys.argv[1]))).serve()
"""


def test_a_driver_that_has_no_memory_to_answer_ends_and_says_why() -> None:
    ours, theirs = socket.socketpair()
    with theirs, Connection(ours.detach()) as connection:
        driver = subprocess.Popen(
            [sys.executable, "-c", WITHOUT_MEMORY, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
        connection.send(("a request that it refuses",))
        _, error = driver.communicate(timeout=LONG)
    assert (1, "there is not enough memory\n") == (driver.returncode, error)


def test_an_answer_that_cannot_be_read_refuses_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "driver.py").write_text(
        "import sys; from multiprocessing.connection import Connection\n"
        "connection = Connection(int(sys.argv[1])); connection.recv(); connection.send_bytes(b'no pickle')"
    )
    monkeypatch.setattr(driver_process, "_PROGRAM", str(tmp_path / "driver.py"))
    driver = DriverProcess()
    with pytest.raises(LaunchError, match=r"cannot be read: UnpicklingError"):
        driver.request("connect")
    driver.close()


def test_a_wait_for_an_answer_ends_with_what_is_raised_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text("import time; time.sleep(1000)")
    driver = DriverProcess(str(tmp_path / "silent.py"))

    def refuse() -> None:
        raise LaunchError("the head is gone")

    with pytest.raises(LaunchError, match="the head is gone"):
        driver.request("read", meanwhile=refuse)
    driver.kill()
    driver.close()
    assert driver._process.returncode == -signal.SIGKILL
