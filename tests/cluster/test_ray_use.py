"""A real Ray of several nodes: what is reserved, what is really used, and what is found."""

from __future__ import annotations

import pytest

from tests.cluster.watching import driver, figure, finding, kinds, task_of, watched
from tests.ray_cluster import RayCluster, shared_cluster

MIB = 2**20
RUNNING = """
@ray.remote(num_cpus=0)
class Board:
    def __init__(self): self.count = 0
    def add(self): self.count += 1
    def read(self): return self.count
board = Board.remote()
def wait_for(count):
    while ray.get(board.read.remote()) < count: time.sleep(0.05)
    print("running", flush=True)
    sys.stdin.read()
"""
"""Tasks say that they run; then the driver prints a line. A task that waits for an answer would give back its CPUs."""


@pytest.fixture(scope="module")
def ray_cluster() -> RayCluster:
    """Two nodes of two CPUs, and a head without any."""
    return shared_cluster()


def test_tasks_that_sleep_on_every_cpu_are_over_reserved_and_not_cpu_bound(ray_cluster: RayCluster) -> None:
    program = """
@ray.remote(num_cpus=2)
def train():
    board.add.remote()
    time.sleep(1000)
tasks = [train.remote() for _ in range(3)]
wait_for(2)
"""
    with driver(ray_cluster, RUNNING + program), watched(ray_cluster) as watch:
        watch.wait_for_seconds(6.0)
        report = watch.stop()
    cluster = report["cluster"]
    assert (4.0, 4.0) == (cluster["reserved_cpus"]["mean"], cluster["total_cpus"]["mean"])
    task = task_of(report, "train")
    assert (2.0, 1.0, {"cpus": 2.0}) == (figure(task, "running"), figure(task, "pending"), task["request"])
    assert figure(task, "used_cpus") < 0.1
    assert cluster["used_cpus"]["mean"] < 1.0  # Ray's own processes, on a machine that may be busy
    assert not kinds(report) & {"cpu_bound", "under_used"}
    problem = finding(report, "over_reserved")
    assert ("task train", "problem") == (problem["subject"], problem["severity"])
    assert problem["seen"].startswith("`train` reserves 2 CPUs and uses ")
    assert problem["seen"].endswith("; 1 task waited for CPUs meanwhile")
    assert problem["amounts"]["num_cpus"] < 1
    assert problem["seconds"] >= 3.0


def test_a_hog_that_reserved_nothing_is_seen_on_its_node(ray_cluster: RayCluster) -> None:
    program = """
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
@ray.remote(num_cpus=0)
def hog():
    memory = bytearray(os.urandom(1 << 20) * 600)
    board.add.remote()
    while True: pass
home = next(node["NodeID"] for node in ray.nodes() if node["Resources"].get("CPU"))
task = hog.options(scheduling_strategy=NodeAffinitySchedulingStrategy(home, soft=False)).remote()
wait_for(1)
"""
    with driver(ray_cluster, RUNNING + program), watched(ray_cluster) as watch:
        watch.wait_for_seconds(5.0)
        report = watch.stop()
    nodes = [node for node in report["nodes"] if "total_cpus" in node["figures"]]
    idle, full = sorted(nodes, key=lambda node: figure(node, "used_memory_bytes"))
    assert (0.0, "processes") == (figure(full, "reserved_cpus", "peak"), full["scope"])
    # A busy machine gives it less than a core: then it waits for the rest, and so do the other threads of the node.
    assert 0.8 < figure(full, "used_cpus") + figure(full, "waited_cpus")
    assert 0.1 < figure(full, "used_cpus") < 1.6
    assert figure(full, "used_memory_bytes") > 600 * MIB
    assert figure(full, "used_memory_bytes") - figure(idle, "used_memory_bytes") > 500 * MIB
    task = task_of(report, "hog")
    assert 600 * MIB < figure(task, "used_memory_bytes") < 800 * MIB
    assert {} == task["request"]
    assert figure(idle, "used_cpus") < figure(full, "used_cpus")


def test_a_cluster_that_is_really_busy_is_cpu_bound(ray_cluster: RayCluster) -> None:
    program = """
@ray.remote(num_cpus=1)
def burn():
    board.add.remote()
    while True: pass
tasks = [burn.remote() for _ in range(6)]
wait_for(4)
"""
    with driver(ray_cluster, RUNNING + program), watched(ray_cluster) as watch:
        watch.wait_for_seconds(7.0)
        report = watch.stop()
    assert 4.0 == figure(task_of(report, "burn"), "running")
    assert "over_reserved" not in kinds(report)
    problem = finding(report, "cpu_bound")
    assert ("cluster", "problem") == (problem["subject"], problem["severity"])
    assert problem["seconds"] >= 3.0
    assert problem["amounts"]["add_cpus"] >= 2  # two wait for one CPU each
    assert "2 tasks" in problem["seen"]


def test_a_spike_of_a_second_is_not_cpu_bound(ray_cluster: RayCluster) -> None:
    program = """
@ray.remote(num_cpus=1)
def spike():
    board.add.remote()
    end = time.process_time() + 0.5
    while time.process_time() < end: pass
    time.sleep(1000)
tasks = [spike.remote() for _ in range(4)]
wait_for(4)
"""
    with driver(ray_cluster, RUNNING + program), watched(ray_cluster, "--after", "8s") as watch:
        watch.wait_for_seconds(10.0)
        report = watch.stop()
    assert 4.0 == report["cluster"]["reserved_cpus"]["mean"]
    assert "cpu_bound" not in kinds(report)


def test_objects_that_do_not_fit_are_seen_on_the_disk(ray_cluster: RayCluster) -> None:
    program = """
@ray.remote(num_cpus=1)
def keep(more):
    kept = [ray.put(os.urandom(1 << 20) * 10) for _ in range(4)]
    board.add.remote()
    while not ray.get(board.read.remote()) > 100: time.sleep(0.1)
    kept += [ray.put(os.urandom(1 << 20) * 10) for _ in range(16)]
    board.add.remote()
    time.sleep(1000)
task = keep.remote(0)
while ray.get(board.read.remote()) < 1: time.sleep(0.05)
print("running", flush=True)
sys.stdin.readline()
ray.get([board.add.remote() for _ in range(100)])
sys.stdin.read()
"""
    with driver(ray_cluster, RUNNING + program) as user, watched(ray_cluster) as watch:
        watch.wait_for_seconds(1.0)
        assert user.stdin is not None
        user.stdin.write("\n")
        user.stdin.flush()
        watch.wait_until(
            lambda history: (
                "spilled_bytes" in history.cluster_stats and history.cluster_stats["spilled_bytes"].last >= 80 * MIB
            ),
            "objects went to the disk",
        )
        report = watch.stop()
    assert report["cluster"]["reserved_object_store_bytes"]["peak"] > 20 * MIB
    problem = finding(report, "spilling")
    assert problem["amounts"]["object_store_bytes"] >= 160 * MIB


def test_custom_resources_and_actors_are_counted(ray_cluster: RayCluster) -> None:
    program = """
@ray.remote(num_cpus=1, memory=100 << 20)
class Server:
    def ask(self): return 1
servers = [Server.remote() for _ in range(2)]
ray.get([server.ask.remote() for server in servers])
print("running", flush=True)
sys.stdin.read()
"""
    with driver(ray_cluster, program), watched(ray_cluster) as watch:
        watch.wait_for_seconds(2.0)
        report = watch.stop()
    assert 2.0 == report["cluster"]["actors"]["last"]
    assert 2.0 == report["cluster"]["reserved_cpus"]["mean"]
    assert 200.0 * MIB == report["cluster"]["reserved_memory_bytes"]["mean"]
    task = task_of(report, "Server")
    assert (2.0, {"cpus": 1.0, "memory_bytes": 100.0 * MIB}) == (figure(task, "running"), task["request"])
