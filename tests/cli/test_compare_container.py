"""`jobmeter compare --container-overhead`."""

from __future__ import annotations

import json

import pytest

from tests.container_engines import IMAGE, PYTHON, WITH_PYTHON, Engine
from tests.running import jobmeter

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_the_cost_of_a_container_is_reported_with_intervals(docker: Engine) -> None:
    done = docker.jobmeter(
        "compare", "--container-overhead", IMAGE, "--runs", "4", "--engine", "docker", "--network", "none", "--json",
        "--", "/bin/busybox", "sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done",
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    measures = {entry["key"]: entry for entry in json.loads(done.stdout)["measures"]}
    startup = measures["startup_seconds"]
    assert startup["ratio"] > 2
    assert startup["interval"][0] < startup["ratio"] < startup["interval"][1]
    assert "startup rose by" in startup["words"]
    assert {"wall_seconds", "cpu_seconds", "memory_peak_bytes", "whole_seconds"} <= measures.keys()
    # What the runtime uses for the start is the container's.
    assert 0 < measures["cpu_seconds"]["difference"] < 0.2
    assert "cgroup_cpu_seconds" == measures["cpu_seconds"]["from"]


def test_memory_is_compared_by_one_source_on_both_sides(docker: Engine) -> None:
    """A Python of 60 MiB is no smaller in a container: bare its peak is `ru_maxrss`, there the cgroup's."""
    done = docker.jobmeter(
        "compare", "--container-overhead", IMAGE, "--runs", "2", "--engine", "docker", "--network", "none", "--json",
        *WITH_PYTHON, "--", PYTHON, "-c", "import time; held = b'x' * (60 << 20); time.sleep(0.3)",
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    (memory,) = [entry for entry in json.loads(done.stdout)["measures"] if entry["key"] == "memory_peak_bytes"]
    assert memory["from"].startswith("cgroup_")
    assert 60 * 2**20 < memory["a"] < 75 * 2**20
    assert 0.9 < memory["ratio"] < 1.2


def test_a_command_that_fails_in_the_container_is_reported(docker: Engine) -> None:
    done = docker.jobmeter(
        "compare", "--container-overhead", IMAGE, "--engine", "docker", "--network", "none", "--", "ls", "/"
    )
    assert 127 == done.returncode
    assert "ls: there is no such program in the image" in done.stderr


def test_a_missing_command_is_reported_in_one_line() -> None:
    done = jobmeter("compare", "--container-overhead", IMAGE)
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert "no command given" in done.stderr
