"""`jobmeter attach --container` and `jobmeter container info`."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container_engines import IMAGE, PYTHON, Engine
from tests.running import command_line, workplace
from tests.waiting import LONG

MIB = 1 << 20
BURN = """
import signal, time
signal.signal(signal.SIGUSR1, lambda *_: None)
while time.process_time() < 1.0: pass
print("attach", time.process_time(), flush=True)
signal.pause()
held = b"x" * (50 << 20)
while time.process_time() < 1.6: pass
print("end", time.process_time(), flush=True)
"""


@pytest.fixture
def running(engine: Engine) -> Iterator[Engine]:
    """An engine with a container `web` that burns CPU before one attaches, and after."""
    start_web(engine)
    yield engine
    engine.client("rm", "--force", "web")


def start_web(engine: Engine) -> None:
    mounts = [word for path in ("/usr", "/lib", "/lib64") for word in ("-v", f"{path}:{path}:ro")]
    engine.client(
        "run", "--detach", "--name", "web", "--network", "none", "--cpus", "1.5", "--memory", "500m", *mounts, IMAGE,
        PYTHON, "-c", BURN,
    )  # fmt: skip
    while "attach" not in engine.client("logs", "web").stdout:
        time.sleep(0.05)


def used_since_attached(engine: Engine) -> float:
    """The CPU time of the load since its line `attach`, about 0.6 s: a hypervisor can make it notice 1.0 s late."""
    words = engine.client("logs", "web").stdout.split()
    return float(words[words.index("end") + 1]) - float(words[words.index("attach") + 1])


def attach(engine: Engine) -> tuple[subprocess.Popen[str], Path]:
    folder = workplace()
    options = ["--engine", engine.name, "--report", f"{folder}/r.json", "--store", folder]
    words = command_line(["attach", "--container", "web", *options])
    process = subprocess.Popen(words, env=engine.environment(), stderr=subprocess.PIPE, text=True)
    # With its first window the counters have been read.
    while not any("\n[" in path.read_text() for path in Path(folder).glob("journal/*")):
        assert process.poll() is None
        time.sleep(0.02)
    return process, Path(folder, "r.json")


def test_a_container_is_measured_from_now_to_its_end(running: Engine) -> None:
    for _ in range(8):
        process, report = attach(running)
        running.client("kill", "--signal", "USR1", "web")
        _, stderr = process.communicate(timeout=LONG)
        record = json.loads(report.read_text())
        assert 0 == process.returncode
        if record["usage"]["cpu_seconds"]["quality"] != "at least":
            break
        # A busy machine kept the meter from looking before the engine removed the cgroup, and the figure says so.
        assert record["usage"]["cpu_seconds"]["value"] <= used_since_attached(running) + 0.05
        running.client("rm", "--force", "web")
        start_web(running)
    assert {"status": "completed", "exit_code": 0, "signal": None} == record["outcome"]
    assert record["usage"]["cpu_seconds"]["value"] == pytest.approx(used_since_attached(running), abs=0.05), record
    assert record["usage"]["memory_peak_bytes"]["value"] == pytest.approx(54 * MIB, rel=0.08)
    assert {"cpus": 1.5, "memory_bytes": 500 * MIB} == record["requirement"]
    assert "web completed" in stderr


def test_ctrl_c_ends_the_measuring_and_not_the_container(running: Engine) -> None:
    process, report = attach(running)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LONG)
    record = json.loads(report.read_text())
    assert ("detached", "at least") == (record["outcome"]["status"], record["usage"]["cpu_seconds"]["quality"])
    assert running.inspect("web")["State"]["Running"]


def test_what_a_container_is_and_may_use_is_shown(running: Engine) -> None:
    done = running.jobmeter("container", "info", "web", "--engine", running.name, "--json")
    information = json.loads(done.stdout)
    assert ("web", "running", {"cpus": 1.5, "memory_bytes": 500 * MIB}) == (
        information["name"],
        information["status"],
        information["limits"],
    )
    assert IMAGE in information["image"]
    assert "memory      500 MiB" in running.jobmeter("container", "info", "web", "--engine", running.name).stdout


@pytest.mark.parametrize("command", [["container", "info", "nosuch"], ["attach", "--container", "nosuch"]])
def test_a_container_that_is_not_there_is_one_clear_line(engine: Engine, command: list[str]) -> None:
    done = engine.jobmeter(*command, "--engine", engine.name)
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert f"has no container 'nosuch'. `{engine.name} ps --all` lists" in done.stderr
