"""What a killed jobmeter leaves in an engine is found by its label, reported, and removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from tests.container_engines import IMAGE, Engine, groups_left
from tests.running import command_line, workplace

pytestmark = pytest.mark.usefixtures("nothing_left")


def start(engine: Engine) -> tuple[subprocess.Popen[bytes], str]:
    """A run of a container that sleeps, and the container's name."""
    words = command_line(
        ["run", "--quiet", "--container", IMAGE, "--engine", engine.name, "--network", "none", "--store", workplace(),
         "--", "/bin/busybox", "sleep", "60"],
    )  # fmt: skip
    process = subprocess.Popen(words, env=engine.environment(), stdin=subprocess.DEVNULL)
    while not (names := [name for name in engine.containers() if engine.inspect(name)["State"]["Running"]]):
        assert process.poll() is None
        time.sleep(0.05)
    return process, names[0]


def finding(engine: Engine) -> dict[str, object]:
    findings = json.loads(engine.jobmeter("doctor", "--json").stdout)
    (of_engine,) = [entry for entry in findings if entry["subject"] == engine.name]
    return dict(of_engine)


def test_a_container_whose_jobmeter_was_killed_is_reported_and_removed_with_its_cgroups(engine: Engine) -> None:
    process, name = start(engine)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    assert [name] == engine.containers()
    problem = finding(engine)
    assert (False, "jobmeter doctor --clean") == (problem["good"], problem["advice"])
    next_run = engine.meter("/bin/busybox", "true")
    assert f"left a container ({name}). `jobmeter doctor --clean` removes them." in next_run.stderr
    assert 0 == next_run.exit_code

    done = engine.jobmeter("doctor", "--clean")
    assert (0, True) == (done.returncode, f"removed the container {name}" in done.stdout)
    assert [] == engine.containers()
    assert not [name for name in groups_left() if str(process.pid) in name]
    assert finding(engine)["good"]


def test_a_container_whose_jobmeter_lives_is_left_alone(engine: Engine) -> None:
    process, name = start(engine)
    done = engine.jobmeter("doctor", "--clean", "--json")
    assert name not in json.loads(done.stdout)["containers"]
    assert [name] == engine.containers()
    process.terminate()
    process.wait()


def test_an_engine_that_does_not_run_is_reported(docker: Engine) -> None:
    nowhere = {**docker.environment(), "DOCKER_HOST": "unix:///nowhere.sock"}
    findings = {
        entry["subject"]: entry for entry in json.loads(docker.jobmeter("doctor", "--json", env=nowhere).stdout)
    }
    assert not findings["docker"]["good"]
    assert "is not running at unix:///nowhere.sock" in findings["docker"]["says"]
