"""A real Ray whose nodes come and go, and what cannot be watched."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.cluster.watching import driver, finding, kinds, node_of, watched
from tests.parts import need_module
from tests.ray_cluster import SOURCE, RayCluster
from tests.waiting import LONG, wait_for


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    """A head with one CPU."""
    cluster = RayCluster(num_cpus=1)
    try:
        yield cluster
    finally:
        cluster.close()


def jobmeter(
    cluster: RayCluster | None, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jobmeter", "cluster", *words],
        env=env or (os.environ if cluster is None else cluster.environment()),
        capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip


def test_nodes_that_join_leave_and_die_are_followed(ray_cluster: RayCluster) -> None:
    with watched(ray_cluster) as watch:
        watch.wait_until(lambda history: len(history.samples) > 1, "the head is sampled")
        alone = watch.history.nodes[ray_cluster.head]
        assert "machine" == alone.scope or alone.name  # a machine of its own, unless a cgroup limits it
        left, killed = ray_cluster.add_node(num_cpus=2), ray_cluster.add_node(num_cpus=3, resources={"pipe": 2})
        watch.wait_until(
            lambda history: all(
                "used_cpus" in history.node_stats.get(node, {}) for node in (ray_cluster.head, left, killed)
            ),
            "all nodes are sampled",
        )
        ray_cluster.remove_node(left)
        ray_cluster.kill_node(killed)
        watch.wait_until(
            lambda history: all(history.nodes[node].left is not None for node in (left, killed)), "two nodes are gone"
        )
        report = watch.stop()
    assert (1.0, 3.0) == (report["cluster"]["nodes"]["min"], report["cluster"]["nodes"]["peak"])
    assert 6.0 == report["cluster"]["total_cpus"]["peak"]
    assert 2.0 == node_of(report, killed)["figures"]["total_custom.pipe"]["last"]
    assert "left_seconds" not in node_of(report, ray_cluster.head)
    assert 0.0 < node_of(report, left)["joined_seconds"] < node_of(report, left)["left_seconds"]
    assert "lost" not in node_of(report, left)
    assert node_of(report, killed)["lost"]
    lost = finding(report, "node_lost")
    assert f"node {node_of(report, killed)['name']}" == lost["subject"]
    assert "the cluster has 3 CPUs fewer until then" == lost["effect"]


def test_nothing_of_the_monitor_is_left_on_the_nodes(ray_cluster: RayCluster) -> None:
    raylet = ray_cluster.raylet(ray_cluster.head)
    with watched(ray_cluster) as watch:
        watch.wait_until(lambda history: len(history.samples) > 1, "it watches")
        assert any("JobmeterSampler" in title for title in _children(raylet))
        report = watch.stop()
    wait_for(lambda: not any("JobmeterSampler" in title for title in _children(raylet)), "the sampler ended")
    assert 0.0 < report["monitor_cpu_seconds"]


def _children(pid: int) -> list[str]:
    titles = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            titles.append(Path(f"/proc/{child}/cmdline").read_text())
        except OSError:
            continue
    return titles


def test_the_dashboard_is_not_needed_and_that_is_said_once(ray_cluster: RayCluster) -> None:
    with watched(ray_cluster) as watch:
        watch.wait_for_seconds(2.0)
        report = watch.stop()
    line = "the dashboard of this cluster is off; everything is read without it"
    assert [line] == report["notes"]
    assert 1 == watch.stderr.count(line)


def test_until_idle_ends_when_nothing_runs(ray_cluster: RayCluster) -> None:
    program = """
@ray.remote
def nap(): sys.stdin.read()
@ray.remote
def work(seconds): time.sleep(seconds)
task = work.remote(1000)
print("running", flush=True)
sys.stdin.readline()
ray.cancel(task, force=True)
sys.stdin.read()
"""
    with driver(ray_cluster, program) as user, watched(ray_cluster, "--until-idle") as watch:
        watch.wait_until(lambda history: "work" in history.task_stats and history.seconds > 2, "the task was seen")
        assert user.stdin is not None
        user.stdin.write("\n")
        user.stdin.flush()
        report = watch.report()
    assert 0.0 == report["cluster"]["reserved_cpus"]["last"]
    assert "node_lost" not in kinds(report)


def test_a_command_says_how_long_and_its_exit_code_is_kept(ray_cluster: RayCluster, tmp_path: Path) -> None:
    done = jobmeter(
        ray_cluster, "--address", ray_cluster.address, "--interval", "0.2s", "--store", str(tmp_path), "--", "sh", "-c",
        "echo out; sleep 1; exit 7",
    )  # fmt: skip
    assert (7, "out\n") == (done.returncode, done.stdout)
    assert f"jobmeter: ray cluster {ray_cluster.address}: 1 node, watched for" in done.stderr


def test_python_watches_in_a_thread_of_its_own(ray_cluster: RayCluster, tmp_path: Path) -> None:
    program = f"""
import jobmeter, ray, time
ray.init(address={ray_cluster.address!r}, log_to_driver=False)
@ray.remote(num_cpus=1)
def work():
    end = time.process_time() + 3
    while time.process_time() < end: pass
with jobmeter.ClusterMonitor("ray", interval=0.2, store={str(tmp_path)!r}) as monitor:
    ray.get(work.remote())
report = monitor.report()
monitor.save({str(tmp_path / "page.html")!r})
monitor.save({str(tmp_path / "report.json")!r})
assert ray.is_initialized(), "the connection is the program's"
assert report["samples"] > 3 and "ended" in report, report
work = [task for task in report["tasks"] if task["name"] == "work"][0]["figures"]
used = work["used_cpus"]["mean"] * work["used_cpus"]["seconds"]
assert 2.4 < used < 4.2, used  # what its process needs to begin is in it
polled = jobmeter.ClusterMonitor("ray", keep=False)
polled.start()
polled.poll()
polled.stop()
assert 2 <= polled.report()["samples"] <= 3
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=ray_cluster.environment(), capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert '"schema": "jobmeter.cluster/1"' in (tmp_path / "report.json").read_text()
    assert 1 == len(list((tmp_path / "cluster").iterdir()))


def kill_head_while_it_is_read(cluster: RayCluster) -> None:
    """Ray waits for such a head for a minute, and then ends its own process."""
    (head,) = _heads(cluster)
    os.kill(head, signal.SIGSTOP)
    time.sleep(2.0)  # no sample comes any more: a request waits for the head
    os.kill(head, signal.SIGKILL)


def _heads(cluster: RayCluster) -> list[int]:
    """The processes that are the head of the cluster."""
    heads = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            words = entry.read_text().split("\0")
            if words[0].endswith("gcs_server") and any(cluster.folder in word for word in words):
                heads.append(int(entry.parent.name))
    return heads


@pytest.mark.parametrize("end", [RayCluster.close, kill_head_while_it_is_read])
def test_a_cluster_that_dies_is_one_line_and_what_was_seen_is_reported(end: Callable[[RayCluster], None]) -> None:
    cluster = RayCluster(num_cpus=1)
    try:
        with watched(cluster) as watch:
            watch.wait_for_seconds(1.0)
            end(cluster)
            report = watch.report(exit_code=125)
    finally:
        cluster.close()
    assert report["samples"] > 1
    assert 1 == watch.stderr.count(f"the Ray cluster at {cluster.address} is gone: ")
    assert "Traceback" not in watch.stderr


@pytest.mark.parametrize("listens", [False, True], ids=["nothing", "another server"])
def test_no_cluster_at_the_address_is_one_line(listens: bool, tmp_path: Path) -> None:
    need_module("ray")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = jobmeter(None, "--address", address, "--store", str(tmp_path))
    assert (125, "") == (done.returncode, done.stdout)
    why = "timed out" if listens else "Connection refused"
    assert f"jobmeter: no Ray cluster answers at {address}: {why}. Is its head running there?\n" == done.stderr


def test_another_version_of_ray_is_one_line(ray_cluster: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import ray; ray.__version__ = '2.0.1'")
    settings = ray_cluster.environment()
    settings["PYTHONPATH"] += f":{tmp_path}"
    done = jobmeter(None, "--address", ray_cluster.address, "--store", str(tmp_path / "store"), env=settings)
    assert (125, "") == (done.returncode, done.stdout)
    assert 1 == done.stderr.count("\n")
    assert done.stderr.startswith(f"jobmeter: the cluster at {ray_cluster.address} runs Ray ")
    assert "this program Ray 2.0.1 with Python" in done.stderr


def test_ray_that_is_not_installed_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('gone')")
    settings = {**os.environ, "PYTHONPATH": f"{SOURCE}:{tmp_path}"}
    done = jobmeter(None, "--engine", "ray", "--store", str(tmp_path), env=settings)
    assert (125, "jobmeter: Ray is not installed. To install it: pip install 'jobmeter[ray]'\n") == (
        done.returncode,
        done.stderr,
    )
