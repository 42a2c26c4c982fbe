"""What is left when a node, the runner or the head of a Ray cluster is lost while jobs run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.ray.place import RayPlace
from tests.ray_cluster import RayCluster
from tests.workflow.live import LONG, kill, lives, running_in, wait_for

JOBS = """
name: many
resource_monitor: {granularity: time_series, sample_interval_seconds: 0.2}
jobs:
  - {name: first, command: "echo first >>ran"}
  - {name: long, command: "echo $$ >>pids; echo seen; until [ -e end ]; do :; done", retry: 1, blocked_by: [first]}
  - {name: last, command: "echo last >>ran", blocked_by: [long]}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    # Ray would wait a minute for a head that is lost.
    made = RayCluster(environment={"RAY_gcs_rpc_server_reconnect_timeout_s": "5"})
    yield made
    made.close()


@pytest.fixture
def place(tmp_path: Path, cluster: RayCluster) -> Iterator[RayPlace]:
    yield RayPlace(tmp_path, cluster)
    assert [] == running_in(tmp_path)


def started(place: RayPlace) -> int:
    """The pid of the long job, once the runner has figures of it."""
    pid = int(place.await_lines("pids", 1)[0])
    wait_for(lambda: any(_windows(lines) for lines in place.journals()), "figures of the job in the journal")
    return pid


def _windows(lines: list[Any]) -> list[Any]:
    """Those that follow the header of the long job, which runs alone."""
    begins = [at for at, line in enumerate(lines) if isinstance(line, dict) and line.get("name") == "long"]
    return [line for line in lines[begins[-1] :] if isinstance(line, list)] if begins else []


def test_a_node_that_is_killed_loses_its_attempt_alone_and_the_workflow_completes_elsewhere(
    place: RayPlace, cluster: RayCluster
) -> None:
    doomed = cluster.add_node(num_cpus=1)
    runner = place.start_run(JOBS)
    pid = started(place)
    other = cluster.add_node(num_cpus=1)
    cluster.kill_node(doomed)
    wait_for(lambda: not lives(pid), "the end of what the dead node ran")
    place.await_lines("pids", 2)
    (place.folder / "end").touch()
    _, said = runner.communicate(timeout=LONG)
    assert 0 == runner.returncode, said
    assert [("first", 1, "completed"), ("long", 1, "lost"), ("long", 2, "completed"), ("last", 1, "completed")] == [
        (each["name"], each["attempt"], each["status"]) for each in place.results()
    ]
    assert (2, ["first", "last"]) == (len(place.lines("pids")), place.lines("ran"))
    assert place.result("long")["cpu_seconds"] > 0  # what was seen of it before
    cluster.remove_node(other)


def test_a_runner_that_is_killed_leaves_nothing_running_and_resume_does_the_rest(
    place: RayPlace, cluster: RayCluster
) -> None:
    node = cluster.add_node(num_cpus=1)
    runner = place.start_run(JOBS)
    pid = started(place)
    kill(runner)
    wait_for(lambda: not lives(pid), "the end of the job whose runner is gone")
    (place.folder / "end").touch()
    done = place.call("resume", "many")
    assert 0 == done.returncode, done.stderr
    assert {"first": "completed", "long": "completed", "last": "completed"} == place.statuses()
    assert (2, ["first", "last"]) == (len(place.lines("pids")), place.lines("ran"))
    assert [("long", 1, "lost"), ("long", 2, "completed")] == [
        (each["name"], each["attempt"], each["status"]) for each in place.results() if each["name"] == "long"
    ]
    cluster.remove_node(node)


def test_resume_ends_what_neither_ray_nor_a_guard_could(place: RayPlace, cluster: RayCluster) -> None:
    node = cluster.add_node(num_cpus=1)
    runner = place.start_run(JOBS)
    pid = started(place)
    worker = _parent(_parent(pid))
    os.kill(_guard_of(worker), signal.SIGKILL)
    os.kill(worker, signal.SIGSTOP)  # so that it cannot end its job itself
    kill(runner)
    (place.folder / "end").touch()
    done = place.call("resume", "many")
    assert 0 == done.returncode, done.stderr
    assert not lives(pid)
    cluster.remove_node(node)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _guard_of(worker: int) -> int:
    """The guard reads from a pipe of the worker."""
    pipes = {os.readlink(entry.path) for entry in os.scandir(f"/proc/{worker}/fd") if os.path.islink(entry.path)}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_guard = b"engines/guard.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
            if is_guard and os.readlink(f"/proc/{pid}/fd/0") in pipes:
                return int(pid)
        except OSError:
            continue
    raise AssertionError(f"{worker} has no guard")


def test_a_head_that_is_lost_ends_the_run_with_one_line_and_resume_works_on_another_cluster(tmp_path: Path) -> None:
    lost = RayCluster(num_cpus=1, environment={"RAY_gcs_rpc_server_reconnect_timeout_s": "5"})
    place = RayPlace(tmp_path, lost)
    try:
        runner = place.start_run(JOBS)
        pid = started(place)
        lost.kill_node(lost.head)
        _, said = runner.communicate(timeout=LONG)
    finally:
        lost.close()
    assert 125 == runner.returncode, said
    lines = [
        line for line in said.splitlines() if "trying again" not in line
    ]  # of the attempt, which may be reported first
    assert 1 == len(lines), said
    assert lines[0].startswith(f"jobmeter: the Ray cluster at {lost.address} is lost: ")
    assert lines[0].endswith("When the cluster is back: jobmeter workflow resume")
    wait_for(lambda: not lives(pid), "the end of the job whose cluster is gone")
    (tmp_path / "end").touch()
    other = RayCluster(num_cpus=1)
    try:
        place.cluster = other
        done = place.call("resume", "many", "--engine", "ray", "--address", other.address)
        assert 0 == done.returncode, done.stderr
        assert ["first", "last"] == place.lines("ran")
    finally:
        other.close()
